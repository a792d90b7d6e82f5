"""The example script that compares solvers with and without forms of numbers."""

import pytest

from hf_mwp.runtime.problems import MathWordProblem
from tests.examples.scripts import load_script


PROBLEMS = [
    ("每天看5页，一周看多少页？", "x=5+7", "12"),
    ("重2千克，又加500克，共多少克？", "x=2+500", "502"),
    ("有3个，又买5个，共几个？", "x=3+5", "8"),
]


class Adder:
    """A solver that adds all numbers."""

    def __init__(self):
        self.reader = self

    def problem(self, text):
        return MathWordProblem(text, language="zh", number_reading="people")

    def __call__(self, text):
        return [{"answer": float(sum(self.problem(text).values))}]


@pytest.fixture(scope="module")
def script():
    return load_script("number_form_accuracy.py")


@pytest.fixture
def rows():
    names = ("text", "equation", "answer")
    return [dict(zip(names, problem, strict=True), id="", language="zh") for problem in PROBLEMS]


@pytest.mark.parametrize(
    ("forms", "counts"),
    [
        # One more problem is right with the days of a week, the label of the other ignores units.
        (["periods of a rate"], [3, 1, 0, 1, 0]),
        (["units"], [3, 1, 1, 0, 1]),
        (["periods of a rate", "units"], [3, 2, 1, 1, 1]),
        (["clock time"], [3, 0, 0, 0, 0]),
    ],
)
def test_problems_whose_numbers_change_are_counted(script, rows, forms, counts):
    assert script.compare(Adder(), rows, forms) == counts

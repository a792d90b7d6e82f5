import math
from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import Question, candidate_answers
from hf_mwp.runtime.plausibility.candidate_answer import Dimensions, decimals, digits
from hf_mwp.runtime.plausibility.question import RATIO
from hf_mwp.runtime.problems import MathWordProblem


def answers(text, *trees):
    """The answers of trees, whose scores fall from -1 in steps of 1."""
    question = Question.read(MathWordProblem(text))
    beam = []
    for rank, tree in enumerate(trees):
        beam.append((Expression.from_infix(tree), -1.0 - rank))
    return candidate_answers(question, beam)


def test_trees_of_equal_value_are_one_answer():
    first, second = answers("有4个和2个和8个，多少个？", "N0-N1", "N0/N1", "N1-N0", "N2/N0")
    assert (first.value, second.value) == (2, -2)
    assert [tree.rank for tree in first.trees] == [0, 1, 3]
    assert [tree.rank for tree in second.trees] == [2]
    assert first.log_mass == pytest.approx(math.log(math.exp(-1) + math.exp(-2) + math.exp(-4)))
    assert first.best.expression.to_infix() == "N0-N1"
    assert first.unused == (2,)


def test_trees_without_a_value_are_left_out():
    (answer,) = answers("有4个和4个，多少个？", "N0/(N0-N1)", "N0+N1")
    assert (answer.value, answer.best.rank) == (8, 1)
    assert answers("有4个，多少个？", "N0/(N0-N0)") == []


def test_rounded_values_with_twelve_equal_digits_are_one_answer():
    first, second = answers("有2个，多少个？", "N0^0.5", "N0^0.5*1", "N0^0.5+0.001")
    assert (len(first.trees), len(second.trees)) == (2, 1)
    # A rounded value may be exact: 4^0.5 is 2.
    (answer,) = answers("有2个和4个，多少个？", "N1^0.5", "N0")
    assert len(answer.trees) == 2


def test_steps_of_an_answer():
    (answer,) = answers("长6米，每段4米，3人，多少？", "(N0-N1)/N0+1")
    third = Fraction(1, 3)
    assert answer.steps == (("-", 6, 4, 2), ("/", 2, 6, third), ("+", third, 1, 1 + third))
    assert answer.inner_results == (2, third)
    assert (answer.slots, answer.unused, answer.last_operator) == ((0, 1, 0), (2,), "+")


def test_number_alone_has_no_steps():
    (answer,) = answers("长6米，多少？", "N0")
    assert (answer.steps, answer.inner_results, answer.last_operator) == ((), (), "")


@pytest.mark.parametrize(
    ("number", "expected"), [("7", 0), ("1/2", 1), ("1/4", 2), ("1/16", 4), ("1/32", 5), ("1/3", 5), ("-3/8", 3)]
)
def test_decimals(number, expected):
    assert decimals(Fraction(number)) == expected
    assert decimals(0.5) == 5  # rounded, so that nobody knows


@pytest.mark.parametrize(
    ("number", "expected"), [("0", 1), ("150", 2), ("-3/8", 3), ("1/3", 8), ("123456789", 8), (f"{10**300}", 1)]
)
def test_digits(number, expected):
    assert digits(Fraction(number)) == expected
    assert digits(0.25) == 2


@pytest.mark.parametrize(
    ("equation", "units", "expected"),
    [
        ("N0+N1", ["米", "米"], ("米", 0, 0, 0)),
        ("N0+N1", ["米", "元"], (None, 1, 0, 0)),
        ("N0+N1", ["米", RATIO], (None, 0, 1, 0)),
        ("N0*N1", ["米", RATIO], ("米", 0, 0, 0)),
        ("N0*(1-N1)", ["米", RATIO], (None, 0, 0, 0)),
        ("N0*N1", ["元", "元"], (None, 0, 0, 1)),
        ("N0*N1", ["米", "米"], (None, 0, 0, 0)),
        ("N0/N1", ["元", "元"], (RATIO, 0, 0, 0)),
        ("N0/N1", ["元", RATIO], ("元", 0, 0, 0)),
        ("N0/N1", ["元", "米"], (None, 0, 0, 0)),
        ("N0-N1*2", ["元", None], ("元", 0, 0, 0)),
        ("N0^N1", ["元", RATIO], (None, 0, 0, 0)),
        ("N0", [RATIO], (RATIO, 0, 0, 0)),
    ],
)
def test_units_through_an_equation(equation, units, expected):
    dimensions = Dimensions.of(Expression.from_infix(equation).to_postfix(), units)
    assert (dimensions.unit, dimensions.clashes, dimensions.shares_added, dimensions.squares) == expected

import math
from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import Question, candidate_answers
from hf_mwp.runtime.plausibility.candidate_answer import Dimensions, decimals, digits
from hf_mwp.runtime.plausibility.question import RATIO
from hf_mwp.runtime.problems import MathWordProblem


def answers(text, *trees):
    question = Question.read(MathWordProblem(text))
    return candidate_answers(question, [(Expression.from_infix(tree), score) for tree, score in trees])


def test_trees_of_equal_value_are_one_answer():
    found = answers("有4个和2个和8个，多少个？", ("N0-N1", -1.0), ("N0/N1", -2.0), ("N1-N0", -2.5), ("N2/N0", -3.0))
    assert [(a.value, [tree.rank for tree in a.trees]) for a in found] == [(2, [0, 1, 3]), (-2, [2])]
    assert found[0].log_mass == pytest.approx(math.log(math.exp(-1) + math.exp(-2) + math.exp(-3)))
    assert found[0].best.expression.to_infix() == "N0-N1"
    assert found[0].unused == (2,)


def test_trees_without_a_value_are_left_out():
    found = answers("有4个和4个，多少个？", ("N0/(N0-N1)", -0.1), ("N0+N1", -3.0))
    assert [(a.value, a.best.rank) for a in found] == [(8, 1)]
    assert answers("有4个，多少个？", ("N0/(N0-N0)", -0.1)) == []


def test_rounded_values_are_one_if_twelve_digits_are():
    found = answers("有2个，多少个？", ("N0^0.5", -1.0), ("N0^0.5*1", -2.0), ("N0^0.5+0.001", -3.0))
    assert [len(answer.trees) for answer in found] == [2, 1]
    # A rounded value may be exact: 4^0.5 is 2.
    assert [len(answer.trees) for answer in answers("有2个和4个，多少个？", ("N1^0.5", -1.0), ("N0", -2.0))] == [2]


def test_the_way_to_a_value():
    (answer,) = answers("长6米，每段4米，3人，多少？", ("(N0-N1)/N0+1", -1.0))
    assert answer.steps == (("-", 6, 4, 2), ("/", 2, 6, Fraction(1, 3)), ("+", Fraction(1, 3), 1, Fraction(4, 3)))
    assert answer.inner_results == (2, Fraction(1, 3))
    assert (answer.slots, answer.unused, answer.last_operator) == ((0, 1, 0), (2,), "+")
    (lone,) = answers("长6米，多少？", ("N0", -1.0))
    assert (lone.steps, lone.inner_results, lone.last_operator) == ((), (), "")


@pytest.mark.parametrize(
    ("number", "count"), [("7", 0), ("1/2", 1), ("1/4", 2), ("1/16", 4), ("1/32", 5), ("1/3", 5), ("-3/8", 3)]
)
def test_decimals(number, count):
    assert decimals(Fraction(number)) == count
    assert decimals(0.5) == 5  # rounded, so that nobody knows


@pytest.mark.parametrize(
    ("number", "count"), [("0", 1), ("150", 2), ("-3/8", 3), ("1/3", 8), ("123456789", 8), (f"{10**300}", 1)]
)
def test_digits(number, count):
    assert digits(Fraction(number)) == count
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
    found = Dimensions.of(Expression.from_infix(equation).to_postfix(), units)
    assert (found.unit, found.clashes, found.shares_added, found.squares) == expected

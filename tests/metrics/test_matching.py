import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.expressions import Expression
from hf_mwp.metrics.matching import answers_match, equations_match


def obvious_annotated(prediction, answer):
    if answer == 0:
        return abs(prediction) <= Fraction("0.000000001")
    return abs(prediction / answer - 1) <= Fraction("0.0001")


@pytest.mark.parametrize(
    ("prediction", "answer", "right"),
    [
        (Fraction(6), Fraction(6), True),
        (Fraction(1, 3), Fraction("0.33333"), True),
        (Fraction(1, 3), Fraction("0.3333"), False),
        (Fraction(10_001), Fraction(10_000), True),
        (Fraction(10_002), Fraction(10_000), False),
        (Fraction(0), Fraction(0), True),
        (1e-12, Fraction(0), True),
        (Fraction(1, 10_000), Fraction(0), False),
        (Fraction(1, 6_000_000), Fraction(1, 6_000_000), True),
        (Fraction(1, 60_000_000), Fraction(1, 6_000_000), False),
        (-6.0, Fraction(6), False),
        (6.00001, 6, True),
        (None, Fraction(6), False),
        (math.nan, Fraction(6), False),
        (math.inf, Fraction(6), False),
        (Fraction(10**400 + 1), Fraction(10**400), True),
    ],
)
def test_annotated_rule(prediction, answer, right):
    assert answers_match(prediction, answer) is right


@pytest.mark.parametrize(
    ("prediction", "answer", "right"),
    [
        (Fraction(1, 3), Fraction("0.3333"), True),
        (Fraction(10_001), Fraction(10_000), False),
        (Fraction(1, 60_000_000), Fraction(1, 6_000_000), True),
        (Fraction("1.0001"), Fraction(1), False),
        (Fraction("1.00009"), Fraction(1), True),
    ],
)
def test_peers_rule_is_absolute_and_strict(prediction, answer, right):
    assert answers_match(prediction, answer, rule="peers") is right


@given(st.fractions(max_denominator=10**7), st.fractions(max_denominator=10**7))
def test_annotated_rule_equals_the_obvious_one(prediction, answer):
    assert answers_match(prediction, answer) is obvious_annotated(prediction, answer)


@given(st.fractions())
def test_a_value_matches_itself(value):
    assert answers_match(value, value)
    assert answers_match(value, value, rule="peers")


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="'exact' is unknown"):
        answers_match(1, 1, rule="exact")
    with pytest.raises(ValueError, match="finite number"):
        answers_match(1, math.nan)


def test_equations():
    parse = Expression.from_infix
    assert equations_match(parse("x=4+2"), parse("(4+2)"))
    assert not equations_match(parse("2+4"), parse("4+2"))
    assert equations_match(parse("2+4"), parse("4+2"), canonical=True)
    assert not equations_match(parse("2-4"), parse("4-2"), canonical=True)

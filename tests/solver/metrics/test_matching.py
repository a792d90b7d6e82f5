import math
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.metrics.matching import answers_match, equations_match


@pytest.mark.parametrize(
    ("prediction", "answer", "is_right"),
    [
        (Fraction(0), Fraction(0), True),
        (1e-12, Fraction(0), True),
        (Fraction(1, 6_000_000), Fraction(1, 6_000_000), True),
        (Fraction(1, 60_000_000), Fraction(1, 6_000_000), False),
        (-6.0, Fraction(6), False),
        (6.00001, 6, False),
        (6.000000001, 6, True),
        (1000.0000001, Fraction(1000), True),
        (1000.00001, Fraction(1000), False),
        (None, Fraction(6), False),
        (math.nan, Fraction(6), False),
        (math.inf, Fraction(6), False),
        (Fraction(10**400 + 1), Fraction(10**400), False),
        (Fraction(10**400 + 1, 3), Fraction(10**400 + 3, 3), True),
    ],
)
def test_annotated_value(prediction, answer, is_right):
    assert answers_match(prediction, answer) is is_right


@pytest.mark.parametrize(
    ("prediction", "answer", "is_right"),
    [
        ("1538910", "1538832", False),
        ("1538832", "1538832", True),
        ("1538832.1", "1538832.0", False),
        ("880.04", "880.0", False),
        ("9", "9 (apples)", True),
        ("1.00001", "100%", False),
        ("3.1403", "3.14", True),
        ("3.1404", "3.14", False),
        ("12345.64", "12345.6", True),
        ("12345.66", "12345.6", False),
        ("0.333333", "1/3", True),
        ("0.3334", "1/3", False),
        ("33333.49", "100000/3", True),
        ("33333.51", "100000/3", False),
        ("7.6667", "7((2)/(3))", True),
        ("7.668", "7((2)/(3))", False),
        ("0.20001", "20%", True),
        ("0.2001", "20%", False),
        ("0.83333333333333333333", "0.8333333333333334", True),
        ("0.833333", "0.8333333333333334", False),
        ("22222.5", "1200000/(2*3*3*3)", True),
    ],
)
def test_annotated_text(prediction, answer, is_right):
    assert answers_match(Fraction(prediction), answer) is is_right


@pytest.mark.parametrize(
    ("prediction", "answer", "is_right"),
    [
        (Fraction(1, 3), Fraction("0.3333"), True),
        (Fraction(10_001), Fraction(10_000), False),
        (Fraction(1, 60_000_000), Fraction(1, 6_000_000), True),
        (Fraction("1.0001"), Fraction(1), False),
        (Fraction("1.00009"), Fraction(1), True),
    ],
)
def test_value_of_an_equation_has_an_absolute_limit(prediction, answer, is_right):
    assert answers_match(prediction, answer, answer_match="equation_value") is is_right


@pytest.mark.parametrize(
    ("equation", "numbers", "answer", "is_right"),
    [
        ("N0*N1", ["0.666666666667", "30"], "20", True),
        ("N0*N1", ["30", "0.666666666666"], "20", True),
        ("N0/N1", ["10", "0.833333333333"], "12", True),
        ("(2-N0)*N1", ["1.16666666667", "6"], "5", True),
        ("0.666666666667*N0", ["30"], "20", True),
        ("N0*N1", ["0.666666666667", "30"], "20.000000001", True),
        ("N0*N1", ["0.666666666667", "30"], "21", False),
        ("N0*N1", ["0.6666667", "30"], "20", False),
        ("N0*N1", ["0.66666667", "30"], "20", False),
        ("N0*N1", ["0.67", "30"], "20", False),
        ("N0*N1", ["6.666666665", "3"], "20", False),
        ("N0*N1", ["19.999999999", "1"], "20", False),
        ("N0*N1", ["0.333333333333", "3"], "0.999999999999", True),
    ],
)
def test_decimals_that_abbreviate_fractions(equation, numbers, answer, is_right):
    assert answers_match(Expression.from_infix(equation).evaluate(numbers), answer) is is_right


@given(st.integers(1, 10**6), st.integers(1, 1000), st.integers(0, 8))
def test_ordinary_decimals_give_only_their_own_integer(answer, factor, places):
    decimal = round(Fraction(answer, factor), places)
    written = f"{float(decimal):.{places}f}"
    assert Fraction(written) == decimal
    value = Expression.from_infix("N0*N1").evaluate([written, str(factor)])
    assert answers_match(value, str(answer)) is (decimal * factor == answer)


@settings(max_examples=50)
@given(st.fractions(max_denominator=10**7), st.fractions(max_denominator=10**7))
def test_annotated_rule_equals_the_naive_one(prediction, answer):
    if answer.denominator == 1:
        is_right = prediction == answer
    else:
        is_right = abs(prediction / answer - 1) <= Fraction("0.0001")
    assert answers_match(prediction, answer) is is_right
    assert answers_match(answer, answer)
    assert answers_match(answer, answer, answer_match="equation_value")


@settings(max_examples=50)
@given(st.fractions(max_denominator=1000), st.integers(0, 6), st.integers(-(10**9), 10**9))
@example(Fraction(1, 19), 1, 526315791)  # 1e-9 of the answer is more than half a unit of its last digit
def test_texts_are_compared_more_finely_than_values(difference, decimals, digits):
    answer = Fraction(digits, 10**decimals)
    written = f"{digits / 10**decimals:.{decimals}f}"
    assert Fraction(written) == answer
    is_close = abs(difference) <= max(Fraction(1, 2 * 10**decimals), abs(answer) / 10**9)
    expected = is_close and answers_match(answer + difference, answer)
    assert answers_match(answer + difference, written) is expected


@pytest.mark.parametrize(
    ("answer", "answer_match", "message"),
    [(1, "exact", "'exact'"), (math.nan, "annotated", "nan"), ("2小时30分", "annotated", "'2小时30分'")],
)
def test_wrong_use_is_named(answer, answer_match, message):
    with pytest.raises(ValueError, match=message):
        answers_match(1, answer, answer_match)


@pytest.mark.parametrize(
    ("prediction", "target", "canonical", "is_equal"),
    [
        ("x=4+2", "(4+2)", False, True),
        ("2+4", "4+2", False, False),
        ("2+4", "4+2", True, True),
        ("2-4", "4-2", True, False),
    ],
)
def test_equations(prediction, target, canonical, is_equal):
    parse = Expression.from_infix
    assert equations_match(parse(prediction), parse(target), canonical) is is_equal

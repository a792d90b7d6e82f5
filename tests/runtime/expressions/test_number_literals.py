from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import NUMBER_PATTERN, ExpressionError, normalize_number, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12),
        ("1,234,567.5", "2469135/2"),
        (".5", "1/2"),
        ("37.5%", "3/8"),
        ("(3/8)", "3/8"),
        ("1(3/4)", "7/4"),
        ("-5", -5),
        ("-1(3/4)", "-7/4"),
        ("+5", 5),
        ("－５", -5),
        ("１２．５％", "1/8"),
        ("１（３／４）", "7/4"),
        (" 5 ", 5),
        # Nine decimals or more: the fraction that they abbreviate, rounded, cut off or printed from a double.
        ("0.666666666", "2/3"),
        ("-0.666666666667", "-2/3"),
        ("66.6666666667%", "2/3"),
        ("10.2857142857", "72/7"),
        ("0.0769230769231", "1/13"),
        ("33.333333333333336", "100/3"),
        # As written: fewer decimals, decimals that end, no fraction with a small denominator.
        ("0.66666667", "66666667/100000000"),
        ("0.666666660", "33333333/50000000"),
        ("2.000000001", "2000000001/1000000000"),
        ("0.999999999", "999999999/1000000000"),
        ("0.000000001", "1/1000000000"),
        ("0.123456789", "123456789/1000000000"),
        ("3.141592654", "1570796327/500000000"),
    ],
)
def test_value_of_a_number(text, value):
    number = parse_number(text)
    assert isinstance(number, Fraction)
    assert number == Fraction(value)


NO_NUMBERS = "x N0 1/2 5. 1.2.3 --5 5%% (3/0) 1(3/0) (1.5/2) 12,34 1，234 1e5 (1/6)0 nan inf ² ٣ (3/8 3/8) (-3/8)"


@pytest.mark.parametrize("text", [*NO_NUMBERS.split(), "", " ", "1 2", "9" * 257])
def test_text_that_is_no_number_is_refused(text):
    with pytest.raises(ExpressionError):
        parse_number(text)


def test_normalize_number():
    assert normalize_number(" １（３ ／ ４） ") == "1(3/4)"
    assert normalize_number("1,234.5") == "1234.5"
    assert normalize_number("＋５") == "5"


@given(st.text(alphabet="0123456789.,%()/（）１．％ ", max_size=20))
def test_each_match_of_the_pattern_has_a_value(text):
    for match in NUMBER_PATTERN.finditer(text):
        value = parse_number(match.group())
        assert value >= 0
        assert parse_number(normalize_number(match.group())) == value


@given(st.integers(0, 10**9), st.integers(0, 999), st.integers(1, 999))
def test_value_of_each_form(whole, numerator, denominator):
    assert parse_number(f"{whole}({numerator}/{denominator})") == whole + Fraction(numerator, denominator)
    assert parse_number(f"{whole:,}") == parse_number(str(whole)) == whole
    assert parse_number(f"{whole}.{numerator:03}%") == (whole + Fraction(numerator, 1000)) / 100


@given(st.decimals(0, 10**6, places=8))
def test_ordinary_decimals_are_exact(value):
    assert parse_number(f"{value:f}") == Fraction(value)


@example(83, 9, 15)
@given(st.integers(0, 10**6), st.integers(1, 100), st.integers(9, 20))
def test_decimals_that_abbreviate_fractions(numerator, denominator, decimals):
    value = Fraction(numerator, denominator)
    ends = round(value, 8) == value
    for digits in (round(value * 10**decimals), value * 10**decimals // 1):
        whole, rest = divmod(digits, 10**decimals)
        assert parse_number(f"{whole}.{rest:0{decimals}}") == value
    assert ends or parse_number(repr(float(value))) == value

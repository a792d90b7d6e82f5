from fractions import Fraction as F

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import NUMBER_PATTERN, ExpressionError, normalize_number, parse_number


@pytest.mark.parametrize(
    "text, value",
    [
        ("12", F(12)),
        ("007", F(7)),
        ("1,234", F(1234)),
        ("1,234,567.5", F(2469135, 2)),
        ("3.5", F(7, 2)),
        (".5", F(1, 2)),
        ("880.0", F(880)),
        ("80%", F(4, 5)),
        ("37.5%", F(3, 8)),
        ("(3/8)", F(3, 8)),
        ("(1/6)", F(1, 6)),
        ("1(3/4)", F(7, 4)),
        ("0(1/2)", F(1, 2)),
        ("-5", F(-5)),
        ("-1(3/4)", F(-7, 4)),
        ("+5", F(5)),
        ("－５", F(-5)),
        ("１２．５％", F(1, 8)),
        ("（３／８）", F(3, 8)),
        ("１（３／４）", F(7, 4)),
        (" 5 ", F(5)),
        # Nine decimals or more: the fraction that they abbreviate, rounded, cut off or printed from a double.
        ("0.666666666667", F(2, 3)),
        ("0.666666666", F(2, 3)),
        ("-0.666666666667", F(-2, 3)),
        ("66.6666666667%", F(2, 3)),
        ("10.2857142857", F(72, 7)),
        ("0.0769230769231", F(1, 13)),
        ("14.333333333333334", F(43, 3)),
        ("33.333333333333336", F(100, 3)),
        ("0.962962962963", F(26, 27)),
        # As written: fewer decimals, decimals that end, no fraction with a small denominator.
        ("0.66666667", F(66666667, 10**8)),
        ("0.666666660", F(66666666, 10**8)),
        ("2.000000001", F(2000000001, 10**9)),
        ("0.999999999", F(999999999, 10**9)),
        ("0.000000001", F(1, 10**9)),
        ("0.123456789", F(123456789, 10**9)),
        ("3.141592654", F(3141592654, 10**9)),
    ],
)
def test_parse_number(text, value):
    result = parse_number(text)
    assert isinstance(result, F) and result == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "x",
        "N0",
        "1/2",
        "5.",
        "1.2.3",
        "--5",
        "5%%",
        "(3/0)",
        "1(3/0)",
        "(1.5/2)",
        "1 2",
        "12,34",
        "1，234",
        "1e5",
    ]
    + ["(1/6)0", "nan", "inf", "²", "٣", "(3/8", "3/8)", "(-3/8)", "1_000", "0x10", "9" * 257],
)
def test_no_number(text):
    with pytest.raises(ExpressionError):
        parse_number(text)


def test_normalize_number():
    assert normalize_number(" １（３ ／ ４） ") == "1(3/4)"
    assert normalize_number("1,234.5") == "1234.5"
    assert normalize_number("＋５") == "5"


@pytest.mark.parametrize(
    "text, found",
    [
        ("有135本", ["135"]),
        ("每筐10kg，5筐", ["10", "5"]),
        ("是(3/8)米，1(3/4)米", ["(3/8)", "1(3/4)"]),
        ("打八折20%，１２．５％", ["20%", "１２．５％"]),
        ("70岁．今年3岁", ["70", "3"]),
        ("共1,234元", ["1,234"]),
        ("1,2,3和1，234", ["1", "2", "3", "1", "234"]),
        ("a .5 cut, $.50, v.5", [".5", ".50", "5"]),
        ("He has 5.", ["5"]),
        ("3/8米", ["3", "8"]),
        ("(3/0)", ["3", "0"]),
        ("(1/6)0", ["(1/6)", "0"]),
        ("12345,678", ["12345", "678"]),
        ("（３／８）", ["（３／８）"]),
        ("没有数", []),
    ],
)
def test_pattern(text, found):
    assert [match.group() for match in NUMBER_PATTERN.finditer(text)] == found


@given(st.text(alphabet="0123456789.,%()/（）１．％ ", max_size=20))
def test_what_the_pattern_finds_has_a_value(text):
    for match in NUMBER_PATTERN.finditer(text):
        value = parse_number(match.group())
        assert value >= 0
        assert parse_number(normalize_number(match.group())) == value


@given(st.integers(0, 10**9), st.integers(0, 999), st.integers(1, 999))
def test_forms(whole, numerator, denominator):
    assert parse_number(f"{whole}({numerator}/{denominator})") == whole + F(numerator, denominator)
    assert parse_number(f"{whole:,}") == parse_number(str(whole)) == whole
    assert parse_number(f"{whole}.{numerator:03}%") == (whole + F(numerator, 1000)) / 100


@given(st.decimals(0, 10**6, places=8))
def test_ordinary_decimals_are_exact(value):
    assert parse_number(f"{value:f}") == F(value)


@example(83, 9, 15)
@given(st.integers(0, 10**6), st.integers(1, 100), st.integers(9, 20))
def test_decimals_that_abbreviate_fractions(numerator, denominator, decimals):
    value = F(numerator, denominator)
    ends = round(value, 8) == value
    for digits in (round(value * 10**decimals), value * 10**decimals // 1):
        whole, rest = divmod(digits, 10**decimals)
        assert parse_number(f"{whole}.{rest:0{decimals}}") == value
    assert ends or parse_number(repr(float(value))) == value

"""Numbers as the data sets write them: `12`, `1,234`, `3.5`, `80%`, `(3/8)`, `1(3/4)`, full-width digits."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache

from .errors import ExpressionError


MAX_NUMBER_LENGTH = 256
"""Longest literal, in characters, that has a value: bounds the size of exact arithmetic."""

MIN_DECIMALS, MAX_DENOMINATOR = 9, 100
"""Least digits after the point of a decimal that may abbreviate a fraction; the largest denominator of that."""

_DOUBLE_ROUNDING = Fraction(1, 2**53)

_D = "[0-9０-９]"
_FRACTION = rf"[(（]{_D}+[/／](?![0０]+[)）]){_D}+[)）]"
NUMBER_PATTERN = re.compile(
    rf"{_D}*{_FRACTION}"
    rf"|(?:{_D}{{1,3}}(?:,{_D}{{3}})+(?!{_D})|{_D}+)(?:[.．]{_D}+)?[%％]?"
    rf"|(?<![\w.])\.{_D}+[%％]?"
)
"""
One unsigned literal, in running text or in an equation. In this order:

- a mixed number `1(3/4)` or a bracketed fraction `(3/8)`; a zero denominator makes none;
- an integer or decimal with thousands commas (`,`, never `，`, which separates list items), decimal point `.` or `．`
  and `%`;
- a decimal without leading zero, `.5`, where no word or number ends before it.
"""

VULGAR = "¼-¾⅐-⅞"
"""Fractions that are one character, for a class of a regular expression."""

VULGAR_PATTERN = re.compile(rf"({_D}*)\s?([{VULGAR}])")
"""One of them, with the whole number before it."""

# Full-width ASCII but for the comma, and the other spellings of operators and brackets. One character each, so that
# positions stay those of the text.
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != ord("，")}
_HALF_WIDTH |= str.maketrans("\u3000×✕✖∗·⋅÷⁄∕∶−–﹣【】〔〕", " ***" + "***" + "///" + ":" + "---" + "[][]")

_LITERAL = re.compile(
    r"([+-]?)(?:(\d*)\((\d+)/(\d+)\)|(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\.\d+)(%?))", flags=re.ASCII
)


def to_half_width(text: str) -> str:
    """`text` with full-width characters and variant operator signs replaced one for one by their ASCII forms."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


def normalize_number(text: str) -> str:
    """The literal `text` in half-width characters, without white space, thousands commas and a plus sign."""
    return "".join(to_half_width(text).split()).replace(",", "").removeprefix("+")


def vulgar_literal(match: re.Match) -> str:
    """The literal of a match of `VULGAR_PATTERN`: `1(1/2)` of `1½`, `(1/2)` of `½`."""
    value = Fraction(unicodedata.numeric(match[2])).limit_denominator(10)
    return f"{to_half_width(match[1])}({value.numerator}/{value.denominator})"


@lru_cache(maxsize=8192)
def parse_number(text: str) -> Fraction:
    """
    The exact value of one literal: `"80%"` is 4/5, `"1(3/4)"` is 7/4, `"(3/8)"` is 3/8, `"1,234"` is 1234.

    A decimal with `MIN_DECIMALS` digits after the point or more is read as the fraction it abbreviates, so that
    `0.666666666667*30` is 20: the one with a denominator up to `MAX_DENOMINATOR` that no decimal equals and that
    differs from it by at most one unit of the last digit and the rounding of a double. Without such a fraction, and
    with fewer digits, it has the value that is written.

    Args:
        text (`str`): The literal as written; a sign before it and white space around it are allowed.

    Returns:
        `Fraction`: its value.

    Raises:
        ExpressionError: if `text` is not exactly one literal, is longer than `MAX_NUMBER_LENGTH` characters, or has a
            zero denominator.
    """
    if len(text) > MAX_NUMBER_LENGTH:
        raise ExpressionError(f"a number may have at most {MAX_NUMBER_LENGTH} characters, not {len(text)}", token=text)
    match = _LITERAL.fullmatch(to_half_width(text).strip())
    if match is None:
        raise ExpressionError("not a number: expected a form like 12, 3.5, 80%, (3/8) or 1(3/4)", token=text)
    sign, whole, numerator, denominator, decimal, percent = match.groups()
    if decimal is None:
        if not int(denominator):
            raise ExpressionError("division by zero in a fraction", token=text)
        value = Fraction(int(whole or 0)) + Fraction(int(numerator), int(denominator))
    else:
        value = _decimal_value(decimal.replace(",", ""))
        if percent:
            value /= 100
    return -value if sign == "-" else value


def _decimal_value(decimal: str) -> Fraction:
    value, decimals = Fraction(decimal), len(decimal.partition(".")[2])
    if decimals < MIN_DECIMALS:
        return value
    fraction = value.limit_denominator(MAX_DENOMINATOR)
    # 2.000000001 does not abbreviate 2, which would have been written as such.
    if 10**decimals % fraction.denominator == 0:
        return value
    # Rounded as a double first, then as a decimal.
    return fraction if abs(fraction - value) <= Fraction(1, 10**decimals) + value * _DOUBLE_ROUNDING else value

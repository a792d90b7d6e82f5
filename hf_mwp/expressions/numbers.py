"""Numbers as the data sets write them: `12`, `1,234`, `3.5`, `80%`, `(3/8)`, `1(3/4)`, full-width digits."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache


MAX_NUMBER_LENGTH = 256  # characters of a literal, which bounds the size of exact arithmetic
# Least digits after the point of a decimal that may abbreviate a fraction, and largest denominator of the fraction.
MIN_DECIMALS, MAX_DENOMINATOR = 9, 100

_DOUBLE_ROUNDING = Fraction(1, 2**53)

_D = "[0-9０-９]"
_FRACTION = rf"[(（]{_D}+[/／](?![0０]+[)）]){_D}+[)）]"
NUMBER_PATTERN = re.compile(
    rf"{_D}*{_FRACTION}"
    rf"|(?:{_D}{{1,3}}(?:,{_D}{{3}})+(?!{_D})|{_D}+)(?:[.．]{_D}+)?[%％]?"
    rf"|(?<![\w.])\.{_D}+[%％]?"
)
"""
One unsigned literal, in text or in an equation:

- a mixed number `1(3/4)` or a bracketed fraction `(3/8)` with a denominator other than 0;
- an integer or decimal with thousands commas (`,`; `，` separates list items), decimal point `.` or `．`, and `%`;
- a decimal without leading zero, `.5`, not directly after a word or number.
"""

VULGAR = "¼-¾⅐-⅞"  # fractions of one character, for a class of a regular expression
VULGAR_PATTERN = re.compile(rf"({_D}*)\s?([{VULGAR}])")  # with the whole number before it

# Full-width ASCII except the comma, and other spellings of operators and brackets. Replaced one for one, so that
# positions stay those of the text.
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != ord("，")}
_HALF_WIDTH |= str.maketrans("\u3000×✕✖∗·⋅÷⁄∕∶−–﹣【】〔〕", " ***" + "***" + "///" + ":" + "---" + "[][]")

_LITERAL = re.compile(
    r"([+-]?)(?:(\d*)\((\d+)/(\d+)\)|(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\.\d+)(%?))", flags=re.ASCII
)


class ExpressionError(ValueError):
    """
    An expression or number cannot be read, built or evaluated.

    Args:
        message (`str`): The fault and its remedy.
        position (`int`, *optional*): 0-based character offset in the text, or 0-based index in the token sequence.
        token (`str`, *optional*): The wrong token; the message shows at most 40 of its characters.

    Attributes `position`, `token` and `reason` (the message without place and token) hold the parts.
    """

    def __init__(self, message: str, position: int | None = None, token: str | None = None):
        self.reason, self.position, self.token = message, position, token
        shown = None if token is None else repr(token if len(token) <= 40 else f"{token[:37]}...")
        if position is not None:
            message = f"{message} (at {position})" if shown is None else f"{message} (at {position}: {shown})"
        elif shown is not None:
            message = f"{message} (token {shown})"
        super().__init__(message)


def to_half_width(text: str) -> str:
    """Return a text with full-width characters and variant operator signs replaced one for one by ASCII."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


def normalize_number(text: str) -> str:
    """Return a literal in half-width characters, without white space, thousands commas and a plus sign."""
    return "".join(to_half_width(text).split()).replace(",", "").removeprefix("+")


def vulgar_literal(match: re.Match) -> str:
    """Return the literal of a match of `VULGAR_PATTERN`: `1(1/2)` of `1½`, `(1/2)` of `½`."""
    value = Fraction(unicodedata.numeric(match[2])).limit_denominator(10)
    return f"{to_half_width(match[1])}({value.numerator}/{value.denominator})"


@lru_cache(maxsize=8192)
def parse_number(text: str) -> Fraction:
    """
    Return the exact value of one literal: `"80%"` is 4/5, `"1(3/4)"` is 7/4, `"(3/8)"` is 3/8, `"1,234"` is 1234.

    A decimal with at least `MIN_DECIMALS` digits after the point is read as the fraction that it abbreviates, so that
    `0.666666666667*30` is 20: one with a denominator up to `MAX_DENOMINATOR`, without an exact decimal, and within one
    unit of the last digit and the rounding of a double.

    Args:
        text (`str`): The literal as written; a sign and surrounding white space are allowed.

    Raises:
        ExpressionError: `text` is not one literal, has more than `MAX_NUMBER_LENGTH` characters, or a zero
        denominator.
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

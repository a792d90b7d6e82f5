"""Numbers in the notations of datasets: `12`, `1,234`, `3.5`, `80%`, `(3/8)`, `1(3/4)`, full-width digits."""

import re
import unicodedata
from fractions import Fraction
from functools import lru_cache


MAX_NUMBER_LENGTH = 256  # maximum number of characters of a literal; bounds the size of exact arithmetic
# Minimum decimals of a number that may be a rounded fraction, and maximum denominator of the fraction.
MIN_DECIMALS = 9
MAX_DENOMINATOR = 100

_DOUBLE_ROUNDING = Fraction(1, 2**53)

_D = "[0-9０-９]"
_FRACTION = rf"[(（]{_D}+[/／](?![0０]+[)）]){_D}+[)）]"
NUMBER_PATTERN = re.compile(
    rf"{_D}*{_FRACTION}"
    rf"|(?:{_D}{{1,3}}(?:,{_D}{{3}})+(?!{_D})|{_D}+)(?:[.．]{_D}+)?[%％]?"
    rf"|(?<![\w.])\.{_D}+[%％]?"
)
"""
Pattern of an unsigned literal in a text or an equation:

- a mixed number `1(3/4)` or a bracketed fraction `(3/8)` with a denominator other than 0;
- an integer or decimal with thousands commas (`,`; `，` separates list items), decimal point `.` or `．`, and `%`;
- a decimal without leading zero, `.5`, not directly after a word or number.
"""

SLOT_PATTERN = re.compile(r"N(0|[1-9]\d{0,3})", flags=re.ASCII)  # `N0` to `N9999`
VULGAR = "¼-¾⅐-⅞"  # single-character fractions, for a character class of a regular expression
VULGAR_PATTERN = re.compile(rf"({_D}*)\s?([{VULGAR}])")  # with the whole number before it

# Full-width ASCII except the comma; variants of operators and brackets. One character each: positions stay valid.
_HALF_WIDTH = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F) if code != ord("，")}
_HALF_WIDTH |= str.maketrans("\u3000×✕✖∗·⋅÷⁄∕∶−–﹣【】〔〕", " ***" + "***" + "///" + ":" + "---" + "[][]")

_LITERAL = re.compile(
    r"([+-]?)(?:(\d*)\((\d+)/(?!0+\))(\d+)\)|(\d+(?:\.\d+)?|\d{1,3}(?:,\d{3})+(?:\.\d+)?|\.\d+)(%?))", flags=re.ASCII
)


class ExpressionError(ValueError):
    """
    Error raised if an expression or number cannot be parsed, built or evaluated.

    Args:
        message (`str`): Description of the error, without position and token. Stored as `reason`.
        position (`int`, *optional*): 0-based character offset in the text, or 0-based index in the token sequence.
        token (`str`, *optional*): The wrong token. The message shows at most 40 of its characters.
    """

    def __init__(self, message: str, position: int | None = None, token: str | None = None):
        self.reason = message
        self.position = position
        self.token = token
        if token is not None and len(token) > 40:
            token = f"{token[:37]}..."
        if position is None and token is not None:
            message += f" (token {token!r})"
        elif position is not None and token is not None:
            message += f" (at {position}: {token!r})"
        elif position is not None:
            message += f" (at {position})"
        super().__init__(message)


def is_slot(token: str) -> bool:
    """Return whether a token is a number slot: `N0`, `N1`, ..."""
    return token[:1] == "N" and SLOT_PATTERN.fullmatch(token) is not None


def to_half_width(text: str) -> str:
    """Replace each full-width character and each variant of an operator sign by one ASCII character."""
    return text if text.isascii() else text.translate(_HALF_WIDTH)


@lru_cache(maxsize=8192)
def normalize_number(text: str) -> str:
    """Return a literal in half-width characters, without white space, thousands commas and plus sign."""
    return "".join(to_half_width(text).split()).replace(",", "").removeprefix("+")


def vulgar_literal(match: re.Match) -> str:
    """Convert a match of `VULGAR_PATTERN` to a literal: `1½` to `1(1/2)`, `½` to `(1/2)`."""
    value = Fraction(unicodedata.numeric(match[2])).limit_denominator(10)
    return f"{to_half_width(match[1])}({value.numerator}/{value.denominator})"


@lru_cache(maxsize=8192)
def parse_number(text: str) -> Fraction:
    """
    Return the exact value of a literal: 4/5 for `"80%"`, 7/4 for `"1(3/4)"`, 3/8 for `"(3/8)"`, 1234 for `"1,234"`.

    A decimal with at least `MIN_DECIMALS` decimals may be a rounded fraction: `0.666666666667` is read as 2/3, so that
    `0.666666666667*30` is 20. The fraction must have a denominator of at most `MAX_DENOMINATOR` and no exact decimal
    form, and differ from the decimal by at most one unit of the last digit (plus the rounding of a double).

    Raises `ExpressionError` if `text` is not a single literal, with or without sign, of at most `MAX_NUMBER_LENGTH`
    characters.
    """
    if len(text) > MAX_NUMBER_LENGTH:
        raise ExpressionError(f"a number may have at most {MAX_NUMBER_LENGTH} characters, not {len(text)}", token=text)
    match = _LITERAL.fullmatch(to_half_width(text).strip())
    if match is None:
        raise ExpressionError("not a number: expected a form like 12, 3.5, 80%, (3/8) or 1(3/4)", token=text)
    sign, whole, numerator, denominator, decimal, percent = match.groups()
    if decimal is None:
        value = Fraction(int(whole or 0)) + Fraction(int(numerator), int(denominator))
    else:
        value = _decimal_value(decimal.replace(",", ""))
        if percent:
            value /= 100
    return -value if sign == "-" else value


def _decimal_value(decimal: str) -> Fraction:
    value = Fraction(decimal)
    decimals = len(decimal.partition(".")[2])
    if decimals < MIN_DECIMALS:
        return value
    fraction = value.limit_denominator(MAX_DENOMINATOR)
    # 2.000000001 is not a rounded 2, which would have been written as 2.
    if 10**decimals % fraction.denominator == 0:
        return value
    # Rounded as a double first, then as a decimal.
    rounding = Fraction(1, 10**decimals) + value * _DOUBLE_ROUNDING
    return fraction if abs(fraction - value) <= rounding else value


def literal_of(value: Fraction) -> str:
    """Return the shortest literal of a value: `12`, `-0.75`, or `(1/3)` if no decimal is exact."""
    if value < 0:
        return f"-{literal_of(-value)}"
    numerator, denominator = value.as_integer_ratio()
    if denominator == 1:
        return str(numerator)
    for num_decimals in range(denominator.bit_length()):
        scale = 10**num_decimals
        if scale % denominator == 0:
            whole, decimals = divmod(numerator * scale // denominator, scale)
            return f"{whole}.{decimals:0{num_decimals}d}"
    return f"({numerator}/{denominator})"

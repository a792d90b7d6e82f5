"""A class for numbers found in problem texts, and conversion of their spellings to literals."""

import re
from dataclasses import dataclass
from fractions import Fraction

from ...expressions import ExpressionError
from ...expressions.numbers import MAX_NUMBER_LENGTH, VULGAR, VULGAR_PATTERN, to_half_width, vulgar_literal


MINUS = "−–﹣－-"
"""Minus signs, for use at the end of a character class of a regular expression."""

_IN_DIGITS = re.compile(rf"[\d{VULGAR}]")
_SIGN = re.compile(rf"[{MINUS}]\s?(?=[\d(（.{VULGAR}])")
_FRACTION = re.compile(r"(?:(\d+)\s)?(\d+) ?[/／⁄] ?(\d+)")
_BARE = re.compile(rf"\d+ ?[/／⁄] ?\d+|[{VULGAR}]")
_SCIENTIFIC = re.compile(r"([\d,]+(?:\.\d+)?)[eE]([-+]?\d{1,9})", flags=re.ASCII)


def literal_in_digits(written: str) -> str:
    """
    Convert a number in digits to a literal: `1/2` to `(1/2)`, `1 1/2` and `1½` to `1(1/2)`, `1.5e3` to `1500`, `− 4`
    to `-4`. Raises `ExpressionError` if the exponent of scientific notation is `MAX_NUMBER_LENGTH` or more.
    """
    if sign := _SIGN.match(written):
        return "-" + to_half_width(literal_in_digits(written[sign.end() :]))
    if fraction := _FRACTION.fullmatch(written):
        return to_half_width(f"{fraction[1] or ''}({fraction[2]}/{fraction[3]})")
    if vulgar := VULGAR_PATTERN.fullmatch(written):
        return vulgar_literal(vulgar)
    if scientific := _SCIENTIFIC.fullmatch(written):
        mantissa, exponent = scientific.groups()
        if abs(int(exponent)) >= MAX_NUMBER_LENGTH:
            raise ExpressionError(f"an exponent must be below {MAX_NUMBER_LENGTH}", token=written)
        return literal_of(Fraction(mantissa.replace(",", "")) * Fraction(10) ** int(exponent))
    return written


def literal_of(value: Fraction) -> str:
    """Return the shortest literal of a non-negative value: `12`, `0.75`, or `(1/3)` if no decimal is exact."""
    if value.denominator == 1:
        return str(value.numerator)
    digits = next((each for each in range(value.denominator.bit_length()) if 10**each % value.denominator == 0), None)
    if digits is None:
        return f"({value.numerator}/{value.denominator})"
    whole, decimals = divmod(value.numerator * 10**digits // value.denominator, 10**digits)
    return f"{whole}.{decimals:0{digits}d}"


@dataclass(frozen=True)
class NumberMention:
    """A number in a text, with its position."""

    text: str  # as written: "3,409", "80%", "1(3/4)", "1 3/4", "twenty-five", "三"
    start: int  # offset of its first character
    end: int  # offset after its last character
    value: Fraction  # exact

    @property
    def is_bare_fraction(self) -> bool:
        """Return whether the number is a fraction without brackets and whole part: `1/2`, `½`, but not `(1/2)`."""
        return _BARE.fullmatch(self.text) is not None

    @property
    def is_percent(self) -> bool:
        """Return whether the number is written with a percent sign."""
        return self.text[-1] in "%％"

    @property
    def literal(self) -> str:
        """Return the literal of the number for expressions. Number words are converted to digits."""
        return literal_in_digits(self.text) if _IN_DIGITS.search(self.text) else literal_of(self.value)

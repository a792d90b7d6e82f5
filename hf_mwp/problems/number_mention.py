"""One number of a problem text."""

from dataclasses import dataclass
from fractions import Fraction


def literal_of(value: Fraction) -> str:
    """
    The shortest literal of a value that is not negative: `12`, `0.75`, or `(1/3)` if no decimal is exact.

    Args:
        value (`Fraction`):
            The value, not negative.

    Returns:
        `str`: a literal that [`~hf_mwp.expressions.parse_number`] reads back to `value`.
    """
    if value.denominator == 1:
        return str(value.numerator)
    rest, digits = value.denominator, 0
    for prime in (2, 5):
        power = 0
        while rest % prime == 0:
            rest //= prime
            power += 1
        digits = max(digits, power)
    if rest != 1:
        return f"({value.numerator}/{value.denominator})"
    whole, decimals = divmod(value.numerator * 10**digits // value.denominator, 10**digits)
    return f"{whole}.{decimals:0{digits}d}"


@dataclass(frozen=True)
class NumberMention:
    """
    A number where it stands in the text.

    Args:
        text (`str`):
            The number as written: `"3,409"`, `"80%"`, `"1(3/4)"`, `"twenty-five"`, `"三"`.
        start (`int`):
            Offset of its first character.
        end (`int`):
            Offset after its last character.
        value (`Fraction`):
            Its exact value.
    """

    text: str
    start: int
    end: int
    value: Fraction

    @property
    def is_percent(self) -> bool:
        """Whether it is written with a percent sign."""
        return self.text[-1] in "%％"

    @property
    def literal(self) -> str:
        """A literal that expressions can hold: the number as written, or its value in digits if written in words."""
        written_in_digits = self.is_percent or self.text[0] in ".(（" or self.text[0].isdecimal()
        return self.text if written_in_digits else literal_of(self.value)

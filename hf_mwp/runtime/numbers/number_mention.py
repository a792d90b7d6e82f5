"""Class of a number in a text."""

import re
from dataclasses import dataclass
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import VULGAR, literal_of

from .digit_numbers import literal_in_digits


IN_DIGITS = re.compile(rf"[\d{VULGAR}]")


@dataclass(frozen=True)
class NumberMention:
    """A number in a text, with its position."""

    text: str  # as written: "3,409", "80%", "1(3/4)", "1 3/4", "twenty-five", "三"
    start: int  # offset of its first character
    end: int  # offset after its last character
    value: Fraction  # exact
    unit: str = ""  # words inside of `text` that remain in the masked text: 千克 in 3千克半
    note: str = ""  # why the reading is uncertain, or empty
    written_literal: str = ""  # literal, if it cannot be derived from `text`

    @property
    def is_bare_fraction(self) -> bool:
        """Return whether the number is a fraction without brackets and whole part: `1/2`, `½`, but not `(1/2)`."""
        return self.literal[0] == "(" and self.text[0] not in "(（"

    @property
    def is_percent(self) -> bool:
        """Return whether the number is written with a percent sign."""
        return self.text[-1] in "%％" or self.written_literal.endswith("%")

    @property
    def literal(self) -> str:
        """Return the literal of the number for expressions. Number words are converted to digits."""
        if self.written_literal:
            return self.written_literal
        if IN_DIGITS.search(self.text):
            return literal_in_digits(self.text)
        return literal_of(self.value)

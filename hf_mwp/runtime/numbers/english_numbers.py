"""Parts of patterns for English numbers: digits, number words and ordinals."""

import re
from fractions import Fraction

from .english_numerals import BELOW_100, DIGITS, words_value


IGNORE_CASE = re.IGNORECASE | re.ASCII
NUMBER = rf"(?:\d{{1,9}}(?:\.\d{{1,6}})?|{BELOW_100}\b)"
MAX_SHORT = 120  # characters; in longer texts, the solvers calculate with the constants that they learned
ONE_TO_NINE = "|".join(DIGITS[1:])
WORD = re.compile("[a-z]+")


def number_of(written: str) -> Fraction:
    """Return the value of digits or of a number word below 100."""
    if written[:1].isdecimal():
        return Fraction(written)
    words = WORD.findall(written.lower())
    if words[0] in ("a", "an"):
        return Fraction(1)
    return Fraction(words_value(words))


def after_words(words: str) -> str:
    """Return a pattern that matches behind one of the words, separated by spaces, and a space."""
    lookbehinds = [rf"(?<=\b{word} )" for word in words.split()]
    return f"(?:{'|'.join(lookbehinds)})"

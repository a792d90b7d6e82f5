"""Keys that find equal problems, and problems that differ in their numbers alone."""

import re
import unicodedata
from typing import NamedTuple, Self

from ..expressions.numbers import to_half_width
from .control_characters import without_controls
from .numbers.chinese_numerals import numerals_in_digits
from .numbers.english_numerals import find_english_numerals


VERSION = 1
"""Version of the rule that makes keys: digests of other versions cannot be compared."""

_CHINESE = re.compile("[\u3400-\u9fff〇]")
_SPACE = re.compile(r"\s+")
_SHARE = re.compile(r"(\d+)分之(\d+(?:\.\d+)?)")
# What joins digits to a number or a calculation; anywhere else it is punctuation. `\w` has the underscore.
_DROPPED = re.compile(r"(?:(?<!\d)[.:/*-]|[.:/*-](?!\d)|[^\w.:/*+<=>±≈≠≤≥√-]|_)+")
# The word that no number is made of in English, since it rarely is one.
_ONE = re.compile(r"\bone\b")
_NUMBER = re.compile(r"\d+(?:[.:/]\d+)*")


class TextKeys(NamedTuple):
    """
    Normalised text for comparison with others: of two equal keys the words are the same, whatever the spaces,
    punctuation, width and case of letters, and whether a number is written in digits or in words.

    Texts are brought to Unicode's NFKC and lower case; numerals in words become digits, 三分之二 the fraction 2/3;
    white space, punctuation and symbols go, except what stands between digits (`3.5`, `3/8`, `3:4`, `3*4`) and
    `+ < = >`. The language need not be known. Used to exclude texts from training and to find those in it: two
    texts may have one key by chance (`1.5` and `1.5 %`), but no two ways to write the same have two.

    Args:
        exact (`str`): The same words and the same numbers.
        masked (`str`): The same words; each number is a `#`. Equal wherever the exact keys are.

    Example:

    ```python
    >>> TextKeys.of("小明有十五个苹果，买了 3．5 千克．")
    TextKeys(exact='小明有15个苹果买了3.5千克', masked='小明有#个苹果买了#千克')
    ```
    """

    exact: str
    masked: str

    @classmethod
    def of(cls, text: str) -> Self:
        """The keys of a text; both are empty if it has neither letters nor digits."""
        text = to_half_width(unicodedata.normalize("NFKC", without_controls(text))).lower()
        if _CHINESE.search(text):
            text = _SHARE.sub(_share, numerals_in_digits(_SPACE.sub("", text)))
        else:
            text = _words_in_digits(text)
        exact = _DROPPED.sub("", _SPACE.sub("", text))
        return cls(exact, _NUMBER.sub("#", exact))


def _share(match: re.Match) -> str:
    # Percent signs are punctuation.
    return match[2] if match[1] == "100" else f"{match[2]}/{match[1]}"


def _words_in_digits(text: str) -> str:
    parts, end = [], 0
    for start, stop, value in find_english_numerals(text):
        parts += (text[end:start], str(value))
        end = stop
    return _ONE.sub("1", "".join((*parts, text[end:])))

"""Keys of texts that are equal for the same problem, and for problems that differ only in their numbers."""

import re
import unicodedata
from typing import NamedTuple, Self

from ..expressions.numbers import to_half_width
from .control_characters import without_controls
from .numbers.chinese_numerals import numerals_in_digits
from .numbers.english_numerals import find_english_numerals


VERSION = 1  # of the rules: digests of other versions cannot be compared

_CHINESE = re.compile("[\u3400-\u9fff〇]")
_SPACE = re.compile(r"\s+")
_SHARE = re.compile(r"(\d+)分之(\d+(?:\.\d+)?)")
# `.:/*-` is punctuation except between digits, where it is part of a number or calculation. `\w` has the underscore.
_DROPPED = re.compile(r"(?:(?<!\d)[.:/*-]|[.:/*-](?!\d)|[^\w.:/*+<=>±≈≠≤≥√-]|_)+")
# Not an English number word, since it rarely is a number.
_ONE = re.compile(r"\bone\b")
_NUMBER = re.compile(r"\d+(?:[.:/]\d+)*")


class TextKeys(NamedTuple):
    """
    Normalised texts, equal for the same words whatever the spaces, punctuation, width and case of letters, and whether
    numbers are written in digits or words.

    The text is normalised to NFKC and lower case; numerals in words become digits, 三分之二 the fraction 2/3; white
    space, punctuation and symbols are dropped, except between digits (`3.5`, `3/8`, `3:4`, `3*4`) and `+ < = >`.
    Different texts may have the same key (`1.5` and `1.5 %`), but a text written in another way never has another.

    Args:
        exact (`str`): Words and numbers.
        masked (`str`): Words, with `#` for each number.

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
        """Return the keys of a text; both are empty if it has neither letters nor digits."""
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

"""Normalised texts for finding duplicates: the same problem, and problems that differ only in their numbers."""

import re
import unicodedata
from typing import NamedTuple, Self

from hf_mwp.runtime.expressions.numbers import to_half_width
from hf_mwp.runtime.numbers.chinese_numerals import numerals_in_digits
from hf_mwp.runtime.numbers.english_numerals import find_english_numerals
from hf_mwp.utils.control_characters import without_controls


VERSION = 1  # of the rules; digests from different versions cannot be compared

_CHINESE = re.compile("[\u3400-\u9fff〇]")
_SPACE = re.compile(r"\s+")
_SHARE = re.compile(r"(?<!\d)(\d+)分之(\d+(?:\.\d+)?)")  # linear in the number of digits
# `.:/*-` are punctuation except between digits (numbers and calculations). `\w` includes the underscore.
_DROPPED = re.compile(r"(?=[\W_])(?:(?<!\d)[.:/*-]|[.:/*-](?!\d)|[^\w.:/*+<=>±≈≠≤≥√-]|_)+")
# `find_english_numerals` skips "one", which rarely is a number.
_ONE = re.compile(r"\bone\b")
_NUMBER = re.compile(r"\d+(?:[.:/]\d+)*")


class TextKeys(NamedTuple):
    """Normalised forms of a text: NFKC, lower case, number words as digits (三分之二 as 2/3), without white space,
    punctuation and symbols except between digits (`3.5`, `3/8`, `3:4`, `3*4`) and in `+ < = >`. Different texts may
    have the same keys (`1.5` and `1.5 %`)."""

    exact: str  # words and numbers: `小明有15个苹果买了3.5千克` for `小明有十五个苹果，买了 3．5 千克．`
    masked: str  # words, with `#` for each number: `小明有#个苹果买了#千克`

    @classmethod
    def of(cls, text: str) -> Self:
        """Compute the keys of a text. Both are empty if the text has neither letters nor digits."""
        # Characters may be part of an escape sequence, or beside each other, only afterwards.
        text = without_controls(unicodedata.normalize("NFKC", text))
        text = to_half_width(unicodedata.normalize("NFKC", text)).lower()
        if _CHINESE.search(text):
            # The percent sign is dropped because it is punctuation.
            text = numerals_in_digits(_SPACE.sub("", text))
            text = _SHARE.sub(lambda share: share[2] if share[1] == "100" else f"{share[2]}/{share[1]}", text)
        else:
            for start, stop, value in reversed(list(find_english_numerals(text))):
                text = f"{text[:start]}{value}{text[stop:]}"
            text = _ONE.sub("1", text)
        exact = _DROPPED.sub("", _SPACE.sub("", text))
        return cls(exact, _NUMBER.sub("#", exact))

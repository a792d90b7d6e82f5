"""Part-of-speech tagger based on jieba, which includes a dictionary."""

import functools
import logging
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from hf_mwp.runtime.numbers.masked_text import mask_numbers
from hf_mwp.runtime.problems.math_word_problem import ProblemError

from .pos_tagger import TaggedWord, fingerprint_of


_RULES = "2"  # version of the rules in this file, which affect the tags


class JiebaTagger:
    """
    Part-of-speech tagger for Chinese texts that uses `jieba.posseg`, with a hidden Markov model for words missing in
    the dictionary. Raises `ProblemError` if the jieba package is missing.

    jieba splits numbers and tags measure words after digits as numerals. Therefore, only the segments between numbers
    ([`mask_numbers`]) are passed to jieba, and each number is a single word with the tag for numerals, `m`:
    `用/p 去/v (3/8)/m 千克/q 水泥/n`. The dictionary in the package is loaded once per process, in about two seconds.
    """

    name = "jieba"

    def __init__(self) -> None:
        try:
            import jieba
            import jieba.posseg
        except ImportError as error:
            raise ProblemError("the tagger 'jieba' needs the jieba package: pip install \"hf-mwp[cli]\"") from error
        jieba.setLogLevel(logging.WARNING)
        self._tagger = _tokenizer()
        folder = Path(jieba.__file__).parent
        self.fingerprint = fingerprint_of(["jieba", jieba.__version__, _RULES], [folder / "dict.txt"])

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Split texts into words and tag them (see [`PosTagger`]), about 900 short texts per second."""
        return [self._tag(text) for text in texts]

    def _tag(self, text: str) -> list[TaggedWord]:
        masked = mask_numbers(text, parse_number_words=False, number_reading="original")
        words: list[TaggedWord] = []
        start = 0
        for segment, number in zip_longest(masked.segments, masked.mentions):
            # The words of jieba joined together equal the segment.
            for pair in self._tagger.cut(segment):
                end = start + len(pair.word)
                if not pair.word.isspace():
                    words.append(TaggedWord(pair.word, pair.flag, start, end))
                start = end
            if number is not None:
                words.append(TaggedWord(number.text, "m", number.start, number.end))
                start = number.end
        return words


@functools.cache
def _tokenizer() -> Any:
    """Create a tokenizer with the default dictionary of jieba."""
    import jieba.posseg

    return jieba.posseg.POSTokenizer(jieba.Tokenizer())

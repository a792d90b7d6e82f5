"""Parts of speech by jieba, which carries its own dictionary."""

import functools
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..errors import ProblemError
from ..fingerprints import fingerprint_of
from ..numbers.masked_text import mask_numbers
from .tagged_word import TaggedWord


# Tags depend on the rules of this file too: a change of them is a new version.
_RULES = "2"


class JiebaTagger:
    """
    Words and tags of Chinese text by `jieba.posseg`, with its hidden Markov model for words outside the dictionary.

    jieba takes numbers apart and tags their pieces by chance, `(`, `3`, `/`, `8` and `)` all as `x`, and a measure
    word behind digits as a numeral. So it reads the pieces between the numbers ([`mask_numbers`]), as a solver does,
    and each number is one word with jieba's tag of numerals, `m`. In 1,000 problems 1,474 words, and not 1,001, are
    then measure words (`q`).

    Taggers have a dictionary of their own, read once in a process: user dictionaries and the parallel mode of the
    package `jieba` do not reach it. The first text takes about two seconds.

    Raises:
        ProblemError: if the package jieba is missing.

    Example:

    ```python
    >>> words = JiebaTagger().tag(["用去(3/8)千克水泥"])[0]
    >>> [(word.word, word.tag) for word in words]
    [('用', 'p'), ('去', 'v'), ('(3/8)', 'm'), ('千克', 'q'), ('水泥', 'n')]
    ```
    """

    name = "jieba"

    def __init__(self) -> None:
        try:
            import jieba
            import jieba.posseg
        except ImportError as error:
            raise ProblemError("the tagger 'jieba' needs the package jieba: pip install jieba") from error
        jieba.setLogLevel(logging.WARNING)
        self._tagger = _tokenizer()
        folder = Path(jieba.__file__).parent
        self.fingerprint = fingerprint_of(["jieba", jieba.__version__, _RULES], [folder / "dict.txt"])

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """See [`PosTagger`]. About 900 short texts a second."""
        return [self._tag(text) for text in texts]

    def _tag(self, text: str) -> list[TaggedWord]:
        masked = mask_numbers(text)
        words: list[TaggedWord] = []
        start = 0
        for index, segment in enumerate(masked.segments):
            # The pieces of a segment are all of it: jieba leaves nothing out and changes nothing.
            for pair in self._tagger.cut(segment):
                end = start + len(pair.word)
                if not pair.word.isspace():
                    words.append(TaggedWord(pair.word, pair.flag, start, end))
                start = end
            if index < len(masked.mentions):
                number = masked.mentions[index]
                words.append(TaggedWord(number.text, "m", number.start, number.end))
                start = number.end
        return words


@functools.cache
def _tokenizer() -> Any:
    """Return jieba's tokenizer with its own dictionary, which nobody changes."""
    import jieba.posseg

    return jieba.posseg.POSTokenizer(jieba.Tokenizer())

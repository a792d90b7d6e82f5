"""Alignment of a tagger's words with the text."""

import re
from collections.abc import Iterable

from ..errors import ProblemError
from ..numbers.number_finding import find_numbers
from .tagged_word import TaggedWord


_NO_SPACE = re.compile(r"\S+")


def locate_words(text: str, pairs: Iterable[tuple[str, str]], offset: int = 0) -> list[TaggedWord]:
    """
    Tagged words with their offsets, those of the text's place in a longer one added.

    White space around words and in them is cut off, and each piece keeps the tag. Characters of the text that no word
    has are passed over. `ProblemError` for a word that is not in the text behind those before it.
    """
    words, position = [], 0
    for written, tag in pairs:
        for piece in _NO_SPACE.findall(written):
            start = text.find(piece, position)
            if start < 0:
                raise ProblemError(f"the tagger's word {piece!r} is not in the text behind {text[:position][-20:]!r}")
            position = start + len(piece)
            words.append(TaggedWord(piece, tag, start + offset, position + offset))
    return words


def join_numbers(text: str, words: list[TaggedWord]) -> list[TaggedWord]:
    """The words with each number in digits ([`find_numbers`]) as one, tagged as its first digit was."""
    joined: list[TaggedWord] = []
    rest = list(reversed(words))
    for number in find_numbers(text):
        first_digit = next(index for index in range(number.start, number.end) if text[index].isnumeric())
        tag = None
        while rest and rest[-1].start < number.end:
            word = rest.pop()
            if word.end <= number.start:
                joined.append(word)
                continue
            if word.start <= first_digit < word.end:
                tag = word.tag
            if word.start < number.start:
                joined.append(_cut(text, word, word.start, number.start))
            if word.end > number.end:
                rest.append(_cut(text, word, number.end, word.end))
                break
        if tag is not None:
            joined.append(TaggedWord(number.text, tag, number.start, number.end))
    return joined + rest[::-1]


def _cut(text: str, word: TaggedWord, start: int, end: int) -> TaggedWord:
    return TaggedWord(text[start:end], word.tag, start, end)

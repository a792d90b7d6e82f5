"""Tagged words, their alignment with the text, and fingerprints of taggers."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ..math_word_problem import ProblemError
from ..numbers.masked_text import find_numbers


_NO_SPACE = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word, its tag and its place in the text. No word has white space."""

    word: str  # as written
    tag: str  # its part of speech in the tagger's own tag set: "n", "v", "m", ...
    start: int  # offset of its first character
    end: int  # offset after its last character


def locate_words(text: str, pairs: Iterable[tuple[str, str]], offset: int = 0) -> list[TaggedWord]:
    """
    Return (word, tag) pairs of a text as tagged words, with `offset` added to their places. Words with white space are
    split at it. `ProblemError` for a word that is not in the text after those before it.
    """
    words, position = [], 0
    for written, tag in pairs:
        for piece in _NO_SPACE.findall(written):
            start = text.find(piece, position)
            if start < 0:
                raise ProblemError(f"the tagger's word {piece!r} is not in the text after {text[:position][-20:]!r}")
            position = start + len(piece)
            words.append(TaggedWord(piece, tag, start + offset, position + offset))
    return words


def join_numbers(text: str, words: list[TaggedWord]) -> list[TaggedWord]:
    """Return the words with each number in digits ([`find_numbers`]) as one word, with the tag of its first digit."""
    joined: list[TaggedWord] = []
    rest = list(reversed(words))
    for number in find_numbers(text):
        first_digit = next(index for index in range(number.start, number.end) if text[index].isnumeric())
        tag = None
        # Words before the number stay; of those that overlap with it, the parts outside stay.
        while rest and rest[-1].start < number.end:
            word = rest.pop()
            if word.end <= number.start:
                joined.append(word)
                continue
            if word.start <= first_digit < word.end:
                tag = word.tag
            if word.start < number.start:
                joined.append(TaggedWord(text[word.start : number.start], word.tag, word.start, number.start))
            if word.end > number.end:
                rest.append(TaggedWord(text[number.end : word.end], word.tag, number.end, word.end))
                break
        if tag is not None:
            joined.append(TaggedWord(number.text, tag, number.start, number.end))
    return joined + rest[::-1]


def fingerprint_of(facts: Iterable[str], files: Iterable[Path] = ()) -> str:
    """
    Return 16 hexadecimal digits that depend on facts (versions, settings) and on the names and contents of files;
    `ProblemError` if a file cannot be read.
    """
    digest = hashlib.sha256("\0".join(facts).encode())
    for path in files:
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise ProblemError(f"{path}: the file cannot be read: {error.strerror or error}") from error
        digest.update(path.name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]

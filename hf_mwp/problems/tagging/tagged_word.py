"""The tagged word class, and functions that align words with texts and compute fingerprints of taggers."""

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
    """A word with its part-of-speech tag and position in the text. It contains no white space."""

    word: str  # as written
    tag: str  # part of speech in the tag set of the tagger: "n", "v", "m", ...
    start: int  # offset of its first character
    end: int  # offset after its last character


def locate_words(text: str, pairs: Iterable[tuple[str, str]], offset: int = 0) -> list[TaggedWord]:
    """
    Convert `(word, tag)` pairs to tagged words with `offset` added to their positions. Words are split at white space.
    Raises `ProblemError` if the text does not contain a word after the end of the previous word.
    """
    words, position = [], 0
    for written, tag in pairs:
        for piece in _NO_SPACE.findall(written):
            start = text.find(piece, position)
            if start < 0:
                before = text[:position][-20:]
                raise ProblemError(f"the tagger returned {piece!r}, which does not occur in the text after {before!r}")
            position = start + len(piece)
            words.append(TaggedWord(piece, tag, start + offset, position + offset))
    return words


def join_numbers(text: str, words: list[TaggedWord]) -> list[TaggedWord]:
    """Merge the words of each number in digits ([`find_numbers`]) into one word with the tag of the first digit."""
    joined: list[TaggedWord] = []
    rest = list(reversed(words))
    for number in find_numbers(text):
        first_digit = next(index for index in range(number.start, number.end) if text[index].isnumeric())
        tag = None
        # Keep words before the number. Of words that overlap with the number, keep the parts outside.
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
    Return a hash of versions and settings (`facts`) and of the names and contents of files, as 16 hexadecimal digits.
    Raises `ProblemError` if a file cannot be read.
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

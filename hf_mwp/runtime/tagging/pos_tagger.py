"""The part-of-speech tagger protocol, its words, and fingerprints of taggers."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable


QUANTITY_TAGS = {"jieba": frozenset(("m", "mg", "mq", "q")), "ltp": frozenset(("m", "q"))}
"""Tags for numbers and measure words, by kind of tagger."""


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word, without white space, with its part-of-speech tag and position in the text."""

    word: str  # as written
    tag: str  # part of speech in the tag set of the tagger: "n", "v", "m", ...
    start: int  # offset of its first character
    end: int  # offset after its last character


@runtime_checkable
class PosTagger(Protocol):
    """Protocol of part-of-speech taggers. A number in digits is a single word, because models see one placeholder."""

    name: str  # kind of tagger, such as "jieba", which determines the tag set
    fingerprint: str  # hash of the version, dictionary and model files of the tagger

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """Return the tagged words of each text, from left to right. Texts may have any length."""
        ...


def fingerprint_of(facts: Iterable[str], files: Iterable[Path] = ()) -> str:
    """Return a hash of versions and settings (`facts`), and of the names and contents of files."""
    digest = hashlib.sha256("\0".join(facts).encode())
    for path in files:
        with path.open("rb") as file:
            digest.update(path.name.encode() + b"\0" + hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]

"""One word of a text and its part of speech."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """A word where it stands in the text. White space belongs to no word."""

    word: str  # as written
    tag: str  # its part of speech in the tagger's own tag set: "n", "v", "m", ...
    start: int  # offset of its first character
    end: int  # offset after its last character

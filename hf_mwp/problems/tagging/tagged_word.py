"""One word of a text and its part of speech."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TaggedWord:
    """
    A word where it stands in the text. White space belongs to no word.

    Args:
        word (`str`): The word as written.
        tag (`str`): Its part of speech in the tagger's own tag set: `"n"`, `"v"`, `"m"`, ...
        start (`int`): Offset of its first character.
        end (`int`): Offset after its last character.
    """

    word: str
    tag: str
    start: int
    end: int

"""Guess of a text's language."""

import re


LATIN_WORD = re.compile("[A-Za-z]{3,}")  # longer than units and unknowns
_CHINESE = re.compile("[\u3400-\u9fff]")


def language_of(text: str, otherwise: str = "en") -> str:
    """Return `"zh"` if a text contains a Chinese character, else `otherwise`."""
    return "zh" if _CHINESE.search(text) else otherwise

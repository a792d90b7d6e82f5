"""Search for mathematical keywords in problem texts."""

import re
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hf_mwp.utils.checked_types import checked


# Characters before a measure word: digits, percent signs, brackets, numerals, and words such as 几, 每 and 这.
_COUNTS = "0-9０-９%％）)\\]一二两三四五六七八九十百千万亿半几每多少第这那某"
_SPACES = " \\u3000"


@checked
def find_keywords(text: str, language: Literal["zh", "en"] = "zh") -> list[tuple[int, int]]:
    """
    Return the half-open character ranges of the mathematical keywords in a text, for masked language modelling: "we
    pay more attention to the mask of mathematical keywords and numbers" (first paper, section Pretraining Tasks). The
    paper lists no keywords; this list was made for hf_mwp. The longest match is used: 多少, not 多 and 少. Words such
    as 比赛 that only contain the characters of a keyword are ignored. English keywords match whole words in any case.
    """
    # Exceptions are matched and then dropped, so that no keyword matches inside them.
    pattern, exceptions = _matcher(language)
    return [match.span() for match in pattern.finditer(text) if match.group().lower() not in exceptions]


@cache
def read_keywords(language: str) -> dict[str, Any]:
    """Load a keyword file: `groups` of words with their reasons, and `exceptions`, words that contain no keyword."""
    import yaml

    return yaml.safe_load(Path(__file__).with_name(f"keywords_{language}.yaml").read_text(encoding="utf-8"))


@cache
def _matcher(language: str) -> tuple[re.Pattern[str], frozenset[str]]:
    """Return a pattern for keywords and exceptions, which prefers the longest match, and the set of exceptions."""
    content = read_keywords(language)
    exceptions = frozenset(content["exceptions"])
    # Words that match anywhere, including exceptions, and words that match only after a number.
    words = set(exceptions)
    number_words = set()
    for group in content["groups"]:
        if group.get("after_number", False):
            number_words.update(group["words"])
        else:
            words.update(group["words"])
    # One branch per initial letter, so that at each character only the words with this letter are tried.
    branches: dict[str, list[str]] = {}
    for word in sorted(words | number_words, key=lambda word: (-len(word), word)):
        ending = re.escape(word[1:]) + _condition(word, after_number=word not in words)
        branches.setdefault(word[0].lower(), []).append(ending)
    patterns = []
    for initial, endings in branches.items():
        pattern = f"{re.escape(initial)}(?:{'|'.join(endings)})"
        if initial.isascii():
            pattern = f"(?<![a-z]){pattern}"
        patterns.append(pattern)
    return re.compile("|".join(patterns), flags=re.IGNORECASE), exceptions


def _condition(word: str, after_number: bool) -> str:
    """Return the pattern after a word: lookbehinds for the text before the word, and a lookahead for its end."""
    condition = ""
    if after_number:
        escaped = re.escape(word)
        condition = f"(?:(?<=[{_COUNTS}]{escaped})|(?<=[{_COUNTS}][{_SPACES}]{escaped}))"
    if word[-1].isascii():
        condition += "(?![a-z])"
    return condition

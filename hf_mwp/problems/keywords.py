"""Words of a problem that carry its mathematics."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from .numbers.masked_text import LANGUAGES


# Characters before a measure word: digits and their marks, a placeholder, numerals, and words that count or point.
_COUNTS = "0-9０-９%％）)\\]一二两三四五六七八九十百千万亿半几每多少第这那某"
_SPACES = " \\u3000"


def find_keywords(text: str, language: str = "zh") -> list[tuple[int, int]]:
    """
    Return the half-open character ranges of the mathematical keywords in a text, which do not overlap.

    Masked language modelling favours them ("we pay more attention to the mask of mathematical keywords and numbers",
    first paper, section Pretraining Tasks; the list is ours). The longest keyword counts: 多少, not 多 and 少. Words
    such as 比赛 that only contain the characters of a keyword are ignored. English keywords are whole words in any
    case.

    Args:
        text (`str`): The text, with its numbers or with placeholders in their place.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`; `ValueError` for another one.

    Example:

    ```python
    >>> text = "小明比小红多4个苹果，两人一共有多少个？"
    >>> [text[start:end] for start, end in find_keywords(text)]
    ['比', '多', '个', '人', '一共', '多少', '个']
    ```
    """
    # Exceptions match too, so that nothing inside them does.
    pattern, exceptions = _matcher(language)
    return [match.span() for match in pattern.finditer(text) if match.group().lower() not in exceptions]


@cache
def read_keywords(language: str) -> dict[str, Any]:
    """
    Return the content of `keywords_zh.yaml` or `keywords_en.yaml`: `groups`, each with a name, a reason, the words,
    and whether they count only `after_number`; and `exceptions`, words inside which no keyword counts.
    """
    import yaml

    if language not in LANGUAGES:
        raise ValueError(f"`language` must be one of {', '.join(LANGUAGES)}, not {language!r}.")
    return yaml.safe_load(Path(__file__).with_name(f"keywords_{language}.yaml").read_text(encoding="utf-8"))


@cache
def _matcher(language: str) -> tuple[re.Pattern[str], frozenset[str]]:
    """Return a pattern for all keywords and exceptions, the longest first, and the exceptions."""
    content = read_keywords(language)
    exceptions = frozenset(content["exceptions"])
    # Words that count anywhere (with the exceptions, which hide them), and words that count only after a number.
    words: dict[bool, set[str]] = {False: set(exceptions), True: set()}
    for group in content["groups"]:
        words[group.get("after_number", False)].update(group["words"])
    branches: dict[str, list[tuple[str, str]]] = {}
    for group, counts in ((words[False], ""), (words[True] - words[False], _COUNTS)):
        for word in group:
            branches.setdefault(word[0], []).append((word, _condition(word, counts)))
    # One alternative for each first character, with the longest words first.
    parts = []
    for first, words in sorted(branches.items()):
        words.sort(key=lambda pair: (-len(pair[0]), pair[0]))
        rests = "|".join(re.escape(word[1:]) + condition for word, condition in words)
        parts.append(f"{re.escape(first)}(?:{rests})")
    return re.compile("|".join(parts), flags=re.IGNORECASE), exceptions


def _condition(word: str, counts: str) -> str:
    """Return the conditions at the end of a word: what is before it, and that no letter follows."""
    escaped = re.escape(word)
    condition = f"(?:(?<=[{counts}]{escaped})|(?<=[{counts}][{_SPACES}]{escaped}))" if counts else ""
    if word[0].isascii() and not counts:
        condition += f"(?<![a-z]{escaped})"
    return condition + "(?![a-z])" if word[-1].isascii() else condition

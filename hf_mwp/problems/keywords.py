"""Words of a problem that carry its mathematics."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .numbers.number_finding import LANGUAGES


# What a measure word stands behind: digits and their marks, a placeholder, numerals, and words that count or point.
_COUNTS = "0-9０-９%％）)\\]一二两三四五六七八九十百千万亿半几每多少第这那某"
_SPACES = " \\u3000"


@dataclass(frozen=True)
class KeywordGroup:
    """
    Keywords of one kind.

    Args:
        name (`str`): The kind: `"comparison"`, `"totals"`, ...
        reason (`str`): Why these words matter for solving.
        words (`tuple[str, ...]`): The words.
        after_number (`bool`, *optional*, defaults to `False`): Whether they count only behind a number or a word that
            counts.
    """

    name: str
    reason: str
    words: tuple[str, ...]
    after_number: bool = False


def keyword_groups(language: str = "zh") -> list[KeywordGroup]:
    """
    The keywords of a language, by kind. They are data: `keywords_zh.yaml` and `keywords_en.yaml` beside this file.

    Args:
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.

    Raises:
        ValueError: for another language.
    """
    return [KeywordGroup(**group | {"words": tuple(group["words"])}) for group in read_keywords(language)["groups"]]


def find_keywords(text: str, language: str = "zh", groups: Collection[str] | None = None) -> list[tuple[int, int]]:
    """
    Where keywords stand in a text.

    The masked language modelling of the first paper favours them ("we pay more attention to the mask of mathematical
    keywords and numbers", section Pretraining Tasks); the paper has no list, so ours is one of its gaps. From left to
    right the longest keyword counts: 多少 is one, not 多 and 少. Words such as 比赛 that only contain a keyword's
    characters are passed over. English keywords are whole words, in any case.

    Args:
        text (`str`): The text, with its numbers or with placeholders in their place.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.
        groups (`Collection[str]`, *optional*): Names of the groups that count; by default all do.

    Returns:
        `list[tuple[int, int]]`: half-open character ranges that do not overlap, by position.

    Raises:
        ValueError: for another language, or a group that there is not.

    Example:

    ```python
    >>> text = "小明比小红多4个苹果，两人一共有多少个？"
    >>> [text[start:end] for start, end in find_keywords(text)]
    ['比', '多', '个', '人', '一共', '多少', '个']
    ```
    """
    pattern, keywords = _matcher(language, None if groups is None else frozenset(groups))
    return [match.span() for match in pattern.finditer(text) if match.group().lower() in keywords]


@cache
def read_keywords(language: str) -> dict[str, Any]:
    """What the keyword file of a language holds: its `groups`, and the `exceptions` inside which none counts."""
    import yaml

    if language not in LANGUAGES:
        raise ValueError(f"language must be one of {', '.join(LANGUAGES)}, not {language!r}")
    return yaml.safe_load(Path(__file__).with_name(f"keywords_{language}.yaml").read_text(encoding="utf-8"))


@cache
def _matcher(language: str, names: frozenset[str] | None) -> tuple[re.Pattern[str], frozenset[str]]:
    """
    A pattern for all words, and those among them that count. Exceptions and the keywords of other groups match too, so
    that nothing inside them does.
    """
    groups = keyword_groups(language)
    unknown = (names or frozenset()) - {group.name for group in groups}
    if unknown:
        there = ", ".join(group.name for group in groups)
        raise ValueError(f"there is no group of keywords {', '.join(sorted(unknown))}: there are {there}")
    exceptions = read_keywords(language)["exceptions"]
    anywhere = {word for group in groups if not group.after_number for word in group.words}.union(exceptions)
    behind = {word for group in groups if group.after_number for word in group.words} - anywhere
    chosen = {word for group in groups if names is None or group.name in names for word in group.words}
    return _compile(anywhere, behind), frozenset(chosen.difference(exceptions))


def _compile(anywhere: Iterable[str], behind: Iterable[str]) -> re.Pattern[str]:
    """Branches by first character, each with its longest word first: quick, since each begins with a literal."""
    branches: dict[str, list[tuple[str, str]]] = {}
    for words, counts in ((anywhere, ""), (behind, _COUNTS)):
        for word in words:
            branches.setdefault(word[0], []).append((word, _condition(word, counts)))
    parts = []
    for first, words in sorted(branches.items()):
        words.sort(key=lambda pair: (-len(pair[0]), pair[0]))
        rests = "|".join(re.escape(word[1:]) + condition for word, condition in words)
        parts.append(f"{re.escape(first)}(?:{rests})")
    return re.compile("|".join(parts), flags=re.IGNORECASE)


def _condition(word: str, counts: str) -> str:
    """What has to hold at the end of a word: what it stands behind, and that no letters go on."""
    escaped = re.escape(word)
    condition = f"(?:(?<=[{counts}]{escaped})|(?<=[{counts}][{_SPACES}]{escaped}))" if counts else ""
    if word[0].isascii() and not counts:
        condition += f"(?<![a-z]{escaped})"
    return condition + "(?![a-z])" if word[-1].isascii() else condition

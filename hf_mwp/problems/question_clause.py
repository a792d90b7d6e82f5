"""The clause of a text that asks the question."""

from __future__ import annotations

import re


CLAUSE_BREAK = re.compile(r"[，。．,；;！!\n]|\.(?=\s|$)|(?<=[?？])")
"""Ends of clauses; a question mark belongs to its clause."""

_ASKS = {
    "zh": re.compile(r"[？?几求=]|多少"),
    "en": re.compile(
        r"\?|\b(?:how (?:many|much|long|far|old)|what (?:is|was|are)|find the)\b",
        re.IGNORECASE,
    ),
}


def find_question(text: str, language: str = "zh") -> tuple[list[tuple[int, int]], int]:
    """
    Split a text into clauses and find the one that asks: the last one with a word or mark of questions, or the last
    one where none has.

    Args:
        text (`str`): The text, with its numbers or with placeholders in their place.
        language (`str`, *optional*, defaults to `"zh"`): `"zh"` or `"en"`.

    Returns:
        `tuple[list[tuple[int, int]], int]`: half-open character ranges of the clauses, without what separates them,
        and the index of the one that asks; -1 if the text is blank.

    Example:

    ```python
    >>> text = "小明有4个苹果，一共有多少个？"
    >>> clauses, place = find_question(text)
    >>> start, end = clauses[place]
    >>> text[start:end]
    '一共有多少个？'
    ```
    """
    breaks = [match.span() for match in CLAUSE_BREAK.finditer(text)]
    starts = [0, *(end for _, end in breaks)]
    ends = [*(start for start, _ in breaks), len(text)]
    clauses = [(start, end) for start, end in zip(starts, ends, strict=True) if text[start:end].strip()]
    asks = _ASKS[language]
    asking = (place for place in reversed(range(len(clauses))) if asks.search(text[slice(*clauses[place])]))
    return clauses, next(asking, len(clauses) - 1)

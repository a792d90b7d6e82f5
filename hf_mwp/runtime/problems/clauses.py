"""Functions that split texts into clauses and find the clause that asks the question."""

import re


UNITS = "个只天米元人千吨公小分年次本岁支张条辆棵块头页名台件朵盒根袋把倍周排间步双层段克秒升架箱套筐瓶"
"""First characters of the measure words that follow a number."""

CLAUSE_BREAK = re.compile(r"[，。．,；;！!\n]|\.(?=\s|$)|(?<=[?？])")
"""Pattern for the end of a clause. A question mark is part of its clause."""

# A punctuation mark between digits is part of a number: 1,200, 3．5, 3：4.
_CLAUSES = re.compile(r"(?:(?<=\d)[,．：](?=\d)|[^，,．。；;？?！!：])+[，,．。；;？?！!：]*|[，,．。；;？?！!：]+")
_ASKS_FOR_NUMBER = re.compile(rf"(?<!第)(?:百分之几|几分之几|多少|几(?=[{UNITS}]))")
_ASKS = {
    "zh": re.compile(r"[？?几求=]|多少"),
    "en": re.compile(r"\?|\b(?:how (?:many|much|long|far|old)|what (?:is|was|are)|find the)\b", re.IGNORECASE),
}


def split_clauses(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each clause of a Chinese text, including the final punctuation."""
    return [match.span() for match in _CLAUSES.finditer(text)]


def find_question_words(text: str) -> list[tuple[int, int]]:
    """Return the start and end of each Chinese word that asks for a number: 多少, 几 (in 几个), 百分之几."""
    return [match.span() for match in _ASKS_FOR_NUMBER.finditer(text)]


def find_question(text: str, language: str = "zh") -> tuple[list[tuple[int, int]], int]:
    """Return the half-open character ranges of the clauses in a text, without separators, and the index of the
    question: the last clause with a question word or question mark or else the last clause (-1 in a blank text)."""
    spans = []
    start = 0
    for match in CLAUSE_BREAK.finditer(text):
        spans.append((start, match.start()))
        start = match.end()
    spans.append((start, len(text)))
    clauses = [(start, end) for start, end in spans if text[start:end].strip()]
    asks = _ASKS[language]
    for index in reversed(range(len(clauses))):
        start, end = clauses[index]
        if asks.search(text[start:end]):
            return clauses, index
    return clauses, len(clauses) - 1

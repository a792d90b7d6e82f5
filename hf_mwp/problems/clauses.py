"""Clauses of Chinese texts."""

import re


UNITS = "个只天米元人千吨公小分年次本岁支张条辆棵块头页名台件朵盒根袋把倍周排间步双层段克秒升架箱套筐瓶"
"""First characters of measure words that follow a number."""

# A sign between digits is part of a number: 1,200, 3．5, 3：4.
_CLAUSES = re.compile(r"(?:(?<=\d)[,．：](?=\d)|[^，,．。；;？?！!：])+[，,．。；;？?！!：]*|[，,．。；;？?！!：]+")
_ASKS = re.compile(rf"(?<!第)(?:百分之几|几分之几|多少|几(?=[{UNITS}]))")


def split_clauses(text: str) -> list[tuple[int, int]]:
    """Start and end of each clause of a text, with the punctuation that ends it."""
    return [match.span() for match in _CLAUSES.finditer(text)]


def find_question_words(text: str) -> list[tuple[int, int]]:
    """Start and end of each word that asks for a number: 多少, 几个, 百分之几."""
    return [match.span() for match in _ASKS.finditer(text)]

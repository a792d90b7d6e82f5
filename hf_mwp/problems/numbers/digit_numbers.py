"""Search for numbers in digits, including signs, bare fractions and scientific notation."""

import re
from itertools import pairwise

from ...expressions import ExpressionError, parse_number
from .number_mention import MINUS, VULGAR, NumberMention, literal_in_digits


_FRACTION = r"[(（]\d+[/／](?![0０]+[)）])\d+[)）]"
_PATTERN = re.compile(
    rf"\d*{_FRACTION}|(?:\d{{1,3}}(?:,\d{{3}})+(?!\d)|\d+)"
    rf"(?:\s?[{VULGAR}]|(?:[.．]\d+)?(?:[%％]|[eE][-+]?\d+(?![0-9A-Za-z_]))?)|(?<![\w.])\.\d+[%％]?|[{VULGAR}]"
)
_SLASH = "/／⁄"
_HAS_SLASH = re.compile(f"[{_SLASH}]")
_HAS_MINUS = re.compile(f"[{MINUS}]")
_REACH = 24  # number of characters before a number that are searched for context

# Bare fractions have at most three digits over four digits, which excludes 2019/2020 and 33333/66666.
_BAR = {"en": re.compile(f"[{_SLASH}]"), "zh": re.compile(rf" ?[{_SLASH}] ?")}
_NUMERATOR, _DENOMINATOR = re.compile(r"\d{1,3}"), re.compile(r"(?!0)\d{1,4}")
_WHOLE = re.compile(r"\d{1,3}")
_OPERATORS = f"=＝<>＜＞≤≥+＋*×✕∗·⋅^÷□{_SLASH}"
_OPERATOR_BEFORE = re.compile(rf"(?:[{_OPERATORS}{MINUS}]\s*|[A-Za-z_])\Z")
_OPERATOR_BEHIND = re.compile(rf"\s*(?:[{_OPERATORS}%％]|[{MINUS}]\s*[\d(（])|[xyzXYZ](?![A-Za-z])")
_DIVISION_BEFORE = {
    "en": re.compile(r"\b(?:calculate|compute|evaluate|divide|quotient of|remainder of)[\s:]*\Z", re.IGNORECASE),
    "zh": re.compile(r"(?:[算式]|除法)[\s：:]*\Z"),
}
_DIVISION_BEHIND = {
    "en": re.compile(r"(?!)"),
    "zh": re.compile(
        r"\s*+(?:[，,]?\s*+(?:所得|得到)?的?\s*+(?:商|余|得数|结果|简便)|得|[，,]?\s*+再\s*[加减乘除]"
        r"|[与和]\s*\d+(?:[.．]\d+)?\s*的\s*[和差积]|中[，,].{0,4}除数)"
    ),
}

_SIGN = re.compile(
    rf"(?:(?:\A|[\n\r]|[.!?]\s)\s*[{MINUS}]|(?:[(（\[【{{｛〔=＝<>＜＞≤≥*×÷/／^，,、；;。！？：:]"
    r"|[是为作得到达着至于进从比的上以温度高低]|加|减去?|乘|表示|[与及]|(?<!的)(?<!的 )和"
    rf"|[\w)）%％]\s?(?:[+＋]|[{MINUS}]\s)"
    r"|\b(?:is|are|was|were|be|of|and|or|to|by|from|between|than|at|with|equals?|plus|minus|times|over|below|above"
    r"|reads?|add(?:ed|ing)?|subtract(?:ed|ing)?|multipl(?:y|ied)|divided?|temperatures?|g[eo]ts?|gives?)[^\S\r\n])"
    rf"[^\S\r\n]?[{MINUS}]\s?)\Z",
    re.IGNORECASE,
)


def find_digit_numbers(text: str, language: str) -> tuple[list[NumberMention], list[str]]:
    """
    Return the numbers in digits, by position, and the texts of numbers that are too long or have too large exponents.
    `language` selects the words that indicate a division instead of a fraction.
    """
    spans = [match.span() for match in _PATTERN.finditer(text)]
    if len(spans) > 1 and _HAS_SLASH.search(text):
        spans = _join_fractions(text, spans, language)
    if spans and _HAS_MINUS.search(text):
        spans = [(_start_of_sign(text, start), end) for start, end in spans]
    mentions, unreadable = [], []
    for start, end in spans:
        written = text[start:end]
        try:
            mentions.append(NumberMention(written, start, end, parse_number(literal_in_digits(written))))
        except ExpressionError:
            unreadable.append(written)
    return mentions, unreadable


def _join_fractions(text: str, spans: list[tuple[int, int]], language: str) -> list[tuple[int, int]]:
    """Merge the spans of the numerator, the denominator and the whole part of each bare fraction."""
    joined: list[tuple[int, int]] = []
    denominator = None
    for first, second in pairwise([*spans, (len(text), len(text))]):
        if first == denominator:
            continue
        if _is_fraction(text, first, second, language):
            denominator = second
            start = first[0]
            if joined and _is_mixed(text, joined[-1], first, second):
                start = joined.pop()[0]
            joined.append((start, second[1]))
        else:
            joined.append(first)
    return joined


def _is_fraction(text: str, first: tuple[int, int], second: tuple[int, int], language: str) -> bool:
    start, end = first[0], second[1]
    if not (
        0 < second[0] - first[1] <= 3
        and _BAR[language].fullmatch(text, first[1], second[0])
        and _NUMERATOR.fullmatch(text, *first)
        and _DENOMINATOR.fullmatch(text, *second)
    ):
        return False
    reach = max(0, start - _REACH)
    if _OPERATOR_BEFORE.search(text, reach, start) and _start_of_sign(text, start) == start:
        return False
    return not (
        _OPERATOR_BEHIND.match(text, end)
        or _DIVISION_BEFORE[language].search(text, reach, start)
        or _DIVISION_BEHIND[language].match(text, end)
    )


def _is_mixed(text: str, whole: tuple[int, int], first: tuple[int, int], second: tuple[int, int]) -> bool:
    """Return whether `whole` and a fraction are a mixed number: one space between, and a fraction below 1."""
    return (
        text[whole[1] : first[0]] in (" ", "\u3000", "\xa0")
        and second[0] - first[1] == 1
        and _WHOLE.fullmatch(text, *whole) is not None
        and int(text[slice(*first)]) < int(text[slice(*second)])
    )


def _start_of_sign(text: str, start: int) -> int:
    """Return the start of the minus sign before the number at `start`, or `start` if there is no sign."""
    before = start - 1 if start and text[start - 1] in MINUS else start - 2
    if before < 0 or text[before] not in MINUS or not (before == start - 1 or text[start - 1].isspace()):
        return start
    return before if _SIGN.search(text, max(0, start - _REACH), start) else start

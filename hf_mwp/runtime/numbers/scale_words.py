"""Scale words after digits (3万, 2 million), which are read where a text also has plain numbers of the same unit."""

import re
from collections import defaultdict
from dataclasses import replace

from .digit_numbers import literal_of
from .number_mention import NumberMention


_SCALES = {
    "万": 10**4, "亿": 10**8, "thousand": 10**3, "million": 10**6, "billion": 10**9, "k": 1000,
}  # fmt: skip
_SCALE = {
    "zh": re.compile(r"\s?(?P<scale>万|亿)\s?(?P<unit>[\u3400-\u9fff]?)"),
    "en": re.compile(r"[\s-]?(?P<scale>thousand|million|billion|(?<![\s-])k)\b(?:\s(?P<unit>[a-z]+))?", re.IGNORECASE),
}
_UNIT = {
    "zh": re.compile(r"\s?(?P<unit>[\u3400-\u9fff])"),
    "en": re.compile(r"\s(?P<unit>[a-z]+)", re.IGNORECASE),
}
_ASKED = {
    "zh": re.compile("(?:多少|几|单位[:：]?)[万亿]"),
    "en": re.compile(r"how many (?:thousand|million|billion)", re.IGNORECASE),
}
_CURRENCY = re.compile(r"[$€£¥￥]\s?\Z")


def scale_numbers(text: str, mentions: list[NumberMention], language: str) -> list[NumberMention]:
    """Multiply the numbers before scale words where the text has numbers of the same unit without the scale word. The
    equations of the datasets have 28 for 28万, so all other scale words remain in the text."""
    scales = [_SCALE[language].match(text, mention.end) for mention in mentions]
    if not any(scales) or _ASKED[language].search(text):
        return mentions
    words = {scale["scale"].lower() for scale in scales if scale is not None}
    words_of_unit: defaultdict[str, set[str]] = defaultdict(set)
    units = []
    for mention, scale in zip(mentions, scales, strict=True):
        unit = _unit_of(text, mention, scale, language)
        units.append(unit)
        if unit and not mention.is_percent:
            word = ""
            if scale is not None:
                word = scale["scale"].lower()
            words_of_unit[unit].add(word)
    scaled = []
    for mention, scale, unit in zip(mentions, scales, units, strict=True):
        if scale is not None and (len(words) > 1 or len(words_of_unit[unit]) > 1):
            mention = _scaled(text, mention, scale)
        scaled.append(mention)
    return scaled


def _unit_of(text: str, mention: NumberMention, scale: re.Match[str] | None, language: str) -> str:
    """Return the currency sign before a number, or the word or character after it and its scale word."""
    currency = _CURRENCY.search(text, max(0, mention.start - 2), mention.start)
    if currency is not None:
        return currency[0][0]
    match = scale
    if match is None:
        match = _UNIT[language].match(text, mention.end)
    if match is None:
        return ""
    return (match["unit"] or "").lower()


def _scaled(text: str, mention: NumberMention, scale: re.Match[str]) -> NumberMention:
    word = scale["scale"].lower()
    end = scale.end("scale")
    value = mention.value * _SCALES[word]
    written = text[mention.start : end]
    literal = literal_of(value)
    note = f"{written} was read as {literal}, because the text also has numbers without {word}"
    return replace(mention, text=written, end=end, value=value, written_literal=literal, note=note)

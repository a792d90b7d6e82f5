"""Scale words after digits (3万, 2 million), which are read where a text also has plain numbers of the same unit, and
scales of prices ($4.5k, 2 grand), which are always read."""

import re
from collections import defaultdict
from dataclasses import replace

from .digit_numbers import literal_of
from .number_mention import NumberMention


_SCALES = {
    "万": 10**4, "亿": 10**8, "thousand": 10**3, "million": 10**6, "billion": 10**9, "k": 1000, "grand": 1000,
    "m": 10**6, "mil": 10**6, "mn": 10**6, "bn": 10**9, "b": 10**9,
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
# Scales that only prices have: $4.5k, $2M, 5 grand. "5 grand pianos" are no price.
_SCALE_OF_PRICE = re.compile(r"(?P<scale>[kKmM]|\s?mil|\s?[mb]n|[bB])(?![A-Za-z/])")
_GRAND = re.compile(
    r"\s(?P<scale>grand)(?=[.,;:?!]|\s(?:for|on|in|a|an|per|to|and|from|left|each|more|less|minus|plus|total)\b|\s*\Z)"
)
_MIN_PLAIN = 10_000  # smallest number that shows that a text does not count in thousands or millions
_WRITTEN_OUT = re.compile(r"\d{1,3}(?:,\d{3})+\Z")


def scale_numbers(text: str, mentions: list[NumberMention], language: str) -> list[NumberMention]:
    """Multiply the numbers before scale words where the text has numbers of the same unit without the scale word, in
    English also where it has large numbers (500,000). The equations of the datasets have 28 for 28万, so all other
    scale words remain in the text."""
    if language == "en":
        mentions = [_scaled_price(text, mention) for mention in mentions]
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
    has_large = language == "en" and any(
        scale is None and _is_written_out(mention) for mention, scale in zip(mentions, scales, strict=True)
    )
    scaled = []
    for mention, scale, unit in zip(mentions, scales, units, strict=True):
        if scale is not None and (has_large or len(words) > 1 or len(words_of_unit[unit]) > 1):
            word = scale["scale"].lower()
            reason = f", because the text also has numbers without {word}"
            mention = _scaled(text, mention, scale, reason)
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


def _is_written_out(mention: NumberMention) -> bool:
    """Return whether a number is large and written with all its digits: 500,000, 12000."""
    if mention.is_percent or mention.value.denominator != 1:
        return False
    return mention.value >= _MIN_PLAIN or _WRITTEN_OUT.match(mention.text) is not None


def _scaled_price(text: str, mention: NumberMention) -> NumberMention:
    """Return the number of $4.5k or 5 grand, or the mention if it has no such scale."""
    scale = _GRAND.match(text, mention.end)
    if scale is not None:
        return replace(_scaled(text, mention, scale, ""), unit=" dollars")
    if _CURRENCY.search(text, max(0, mention.start - 2), mention.start):
        scale = _SCALE_OF_PRICE.match(text, mention.end)
    if scale is None:
        return mention
    return _scaled(text, mention, scale, "")


def _scaled(text: str, mention: NumberMention, scale: re.Match[str], reason: str) -> NumberMention:
    word = scale["scale"].strip().lower()
    end = scale.end("scale")
    value = mention.value * _SCALES[word]
    written = text[mention.start : end]
    literal = literal_of(value)
    note = f"{written} was read as {literal}{reason}"
    return replace(mention, text=written, end=end, value=value, written_literal=literal, note=note)

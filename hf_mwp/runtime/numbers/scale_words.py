"""Scale words after digits (3万, 2 million), which are read where a text has or asks for plain numbers of the same
unit, and scales of prices ($4.5k, 2 grand), which are always read."""

import re
from collections import defaultdict
from dataclasses import replace
from fractions import Fraction

from hf_mwp.runtime.expressions.numbers import literal_of

from .number_mention import NumberMention


_SCALES = {
    "万": 10**4, "亿": 10**8, "thousand": 10**3, "million": 10**6, "billion": 10**9, "k": 1000, "grand": 1000,
    "lakh": 10**5, "lakhs": 10**5, "crore": 10**7, "crores": 10**7, "m": 10**6, "mil": 10**6, "mn": 10**6,
    "bn": 10**9, "b": 10**9,
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
    "zh": re.compile("(?:多少|几|单位[:：]?)(?P<scale>[万亿])(?P<unit>[\u3400-\u9fff]?)"),
    "en": re.compile(r"how many (?P<scale>thousand|million|billion)(?:\s(?P<unit>[a-z]+))?", re.IGNORECASE),
}
_ASKED_UNIT = {
    "zh": re.compile("(?:多少|几)个?(?P<unit>[\u3400-\u9fff])"),
    "en": re.compile(r"how many (?:more |total )?(?P<unit>[a-z]+)", re.IGNORECASE),
}
# The labels of Chinese datasets count in 万 where the question does not: 40万台, ..., 多少台.
_IS_SCALED_FOR_THE_QUESTION = {"zh": False, "en": True}
# In 人口85万，..., 多少人, the unit is left out.
_UNITS_LEFT_OUT = {"元", "人", "钱", "块"}
_MIN_RESCALED = Fraction(1, 100)
_CURRENCY = re.compile(r"[$€£¥￥]\s?\Z")
# 1.2k subscribers, but not a 5k race.
_THOUSANDS = re.compile(r"(?P<scale>[kK])(?![A-Za-z/])(?! (?:run|race|walk|marathon|tv)s?\b)")
# Scales that only prices have: $4.5k, $2M, 5 grand. "5 grand pianos" are no price.
_SCALE_OF_PRICE = re.compile(r"(?P<scale>[kKmM]|\s?mil|\s?[mb]n|[bB])(?![A-Za-z/])")
# 2k calories beside 450.
_THOUSANDS_OF_THINGS = re.compile(r"(?P<scale>[kK])(?= (?!run|race|walk|marathon|tv|in\b|is\b|was\b)[a-z]{2,12}s\b)")
_WITH_PEOPLE = re.compile(
    r"(?P<scale>[kK])"
    r"(?= (?:subscribers|subs|followers|people|fans|views|likes|users|visitors|members|downloads|players)\b)"
)
# No solver has learned them.
_INDIAN = re.compile(r"\s(?P<scale>lakhs?|crores?)\b", re.IGNORECASE)
_GRAND = re.compile(
    r"\s(?P<scale>grand)(?=[.,;:?!]|\s(?:for|on|in|a|an|per|to|and|from|left|each|more|less|minus|plus|total)\b|\s*\Z)"
)
_MIN_PLAIN = 10_000  # smallest number that shows that a text does not count in thousands or millions
_WRITTEN_OUT = re.compile(r"\d{1,3}(?:,\d{3})+\Z")


def scale_numbers(text: str, mentions: list[NumberMention], language: str) -> list[NumberMention]:
    """Multiply the numbers before scale words where the text has numbers of the same unit without the scale word, in
    English also where it has large numbers (500,000) or asks for the unit. A question for 万人 gets all its numbers in
    万. The equations of the datasets have 28 for 28万, so all other scale words remain in the text."""
    if language == "en":
        mentions = [_scaled_price(text, mention, mentions) for mention in mentions]
    scales = [_SCALE[language].match(text, mention.end) for mention in mentions]
    if not any(scales):
        return mentions
    units = []
    for mention, scale in zip(mentions, scales, strict=True):
        units.append(_unit_of(text, mention, scale, language))
    asked = _ASKED[language].search(text)
    if asked is not None:
        return _in_the_scale_asked_for(text, mentions, scales, units, asked)
    return _without_scales(text, mentions, scales, units, language)


def _without_scales(
    text: str, mentions: list[NumberMention], scales: list[re.Match[str] | None], units: list[str], language: str
) -> list[NumberMention]:
    """Return the numbers, those before scale words multiplied where the text needs it."""
    words = {scale["scale"].lower() for scale in scales if scale is not None}
    words_of_unit: defaultdict[str, set[str]] = defaultdict(set)
    for mention, scale, unit in zip(mentions, scales, units, strict=True):
        if unit and not mention.is_percent:
            word = ""
            if scale is not None:
                word = scale["scale"].lower()
            words_of_unit[unit].add(word)
    asked_units = {asked["unit"].lower() for asked in _ASKED_UNIT[language].finditer(text)}
    plain_units: set[str] = set()
    if _IS_SCALED_FOR_THE_QUESTION[language]:
        plain_units = asked_units
    elif asked_units & _UNITS_LEFT_OUT:
        plain_units = {""}
    is_written_out = {"en": _is_written_out, "zh": _is_read_with_its_scale}[language]
    has_large = any(scale is None and is_written_out(mention) for mention, scale in zip(mentions, scales, strict=True))
    scaled = []
    for mention, scale, unit in zip(mentions, scales, units, strict=True):
        is_plain_elsewhere = unit in plain_units or len(words_of_unit[unit]) > 1
        is_thousands = scale is not None and scale["scale"].lower() == "thousand" and mention.value.denominator == 1
        is_colloquial = scale is not None and text.startswith("块", scale.end("scale"))
        if scale is not None and (has_large or len(words) > 1 or is_plain_elsewhere or is_thousands or is_colloquial):
            word = scale["scale"].lower()
            reason = f", because the text has or asks for numbers without {word}"
            mention = _scaled(text, mention, scale, reason)
        elif scale is not None and unit in asked_units:
            mention = replace(mention, note=f"{mention.text} is counted in {scale['scale']}, and so is the answer")
        scaled.append(mention)
    return scaled


def _in_the_scale_asked_for(
    text: str,
    mentions: list[NumberMention],
    scales: list[re.Match[str] | None],
    units: list[str],
    asked: re.Match[str],
) -> list[NumberMention]:
    """Return the numbers, those of the unit asked for in its scale: 1.5亿 as 15000万 in a question for 万人."""
    word = asked["scale"].lower()
    asked_unit = (asked["unit"] or "").lower()
    scaled_units = set()
    for scale, unit in zip(scales, units, strict=True):
        if scale is not None:
            scaled_units.add(unit)
    converted = []
    for mention, scale, unit in zip(mentions, scales, units, strict=True):
        is_scaled = scale is not None or _is_read_with_its_scale(mention)
        # In 人口1.5亿，..., the unit is left out.
        has_the_unit = unit == asked_unit if unit else is_scaled
        has_the_scale = scale is not None and scale["scale"].lower() == word
        if has_the_unit and unit in scaled_units and not has_the_scale and not mention.is_percent:
            mention = _rescaled(text, mention, scale, word)
        converted.append(mention)
    return converted


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
    unit = (match["unit"] or "").lower()
    # 2万块 and 3500元 have the same unit.
    return "元" if unit == "块" and "元" in text else unit


def _is_written_out(mention: NumberMention) -> bool:
    """Return whether a number is large and written with all its digits: 500,000, 12000."""
    if mention.is_percent or mention.value.denominator != 1:
        return False
    return mention.value >= _MIN_PLAIN or _WRITTEN_OUT.match(mention.text) is not None


def _is_read_with_its_scale(mention: NumberMention) -> bool:
    """Return whether a Chinese number was read with the scale word inside of it: 六十万, 12万8."""
    return re.search("[万亿]", mention.text) is not None


def _has_hundreds(text: str, mentions: list[NumberMention], mention: NumberMention) -> bool:
    """Return whether a text has plain numbers of the order of 2k: 450 calories."""
    for other in mentions:
        is_plain = not other.is_percent and _THOUSANDS.match(text, other.end) is None
        has_currency = _CURRENCY.search(text, max(0, other.start - 2), other.start) is not None
        if other is not mention and is_plain and not has_currency and 100 <= other.value <= 1000 * mention.value:
            return True
    return False


def _scaled_price(text: str, mention: NumberMention, mentions: list[NumberMention]) -> NumberMention:
    """Return the number of $4.5k or 5 grand, or the mention if it has no such scale."""
    scale = _GRAND.match(text, mention.end)
    if scale is not None:
        return replace(_scaled(text, mention, scale, ""), unit=" dollars")
    indian = _INDIAN.match(text, mention.end)
    if indian is not None:
        return _scaled(text, mention, indian, "")
    if _CURRENCY.search(text, max(0, mention.start - 2), mention.start):
        scale = _SCALE_OF_PRICE.match(text, mention.end)
    elif mention.value.denominator != 1:
        scale = _THOUSANDS.match(text, mention.end)
    else:
        scale = _WITH_PEOPLE.match(text, mention.end)
        if scale is None:
            scale = _THOUSANDS_OF_THINGS.match(text, mention.end)
            if scale is not None and not _has_hundreds(text, mentions, mention):
                scale = None
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


def _rescaled(text: str, mention: NumberMention, scale: re.Match[str] | None, word: str) -> NumberMention:
    """Return a number with or without a scale word in another scale."""
    end = mention.end
    factor = Fraction(1, _SCALES[word])
    if scale is not None:
        end = scale.end("scale")
        factor *= _SCALES[scale["scale"].lower()]
    value = mention.value * factor
    # "每6个人中有1人" in a question for 亿人 counts persons.
    if value < _MIN_RESCALED:
        return mention
    written = text[mention.start : end]
    literal = literal_of(value)
    unit = word if word in "万亿" else f" {word}"
    note = f"{written} was read as {literal}{unit}, the scale of the question"
    return replace(mention, text=written, end=end, value=value, unit=unit, written_literal=literal, note=note)

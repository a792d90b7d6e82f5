"""Forms of fractions, halves and multiples in English texts: two thirds, an hour and a half, a couple of, 8-1/2."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, NUMBER, ONE_TO_NINE, WORD, number_of
from .english_numerals import BELOW_100, ONES
from .number_form import FormMatch, NumberForm, fraction_literal, number_match


_DENOMINATORS = {
    "third": 3, "fourth": 4, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_DENOMINATOR = "|".join(_DENOMINATORS)
_AFTER_FRACTION = re.compile(r"\s+(?:of|the|as)\b", re.IGNORECASE)
_MULTIPLES = {"couple": 2, "score": 20, "gross": 144}


def _unit_and_a_half(match: re.Match[str], text: str) -> FormMatch:
    """An hour and a half, 3 miles and a half."""
    unit = match["unit"]
    if match["number"].lower() in ("a", "an", "one"):
        unit = f"{unit}s"
    return number_match(match, number_of(match["number"]) + Fraction(1, 2), unit=f" {unit}")


def _mixed_in_words(match: re.Match[str], text: str) -> FormMatch:
    """Two and a quarter, 3 and two thirds."""
    denominator = _DENOMINATORS[match["denominator"].lower()]
    value = number_of(match["number"]) + number_of(match["numerator"]) / denominator
    return number_match(match, value)


def _fraction_in_words(match: re.Match[str], text: str) -> FormMatch | None:
    """Two thirds, three-fourths of, a quarter of."""
    numerator = number_of(match["numerator"])
    denominator = _DENOMINATORS[match["denominator"].lower()]
    is_clear = "-" in match[0] or _AFTER_FRACTION.match(text[match.end() : match.end() + 8]) is not None
    # "a third grade", "two quarters" of a dollar and "the two fifth graders" are no fractions.
    if numerator == 1:
        is_fraction = is_clear and not match["plural"]
    else:
        is_fraction = match["plural"] and (is_clear or denominator != 4)
    if not is_fraction:
        return None
    return number_match(match, numerator / denominator, fraction_literal(0, int(numerator), denominator))


def _decimal_in_words(match: re.Match[str], text: str) -> FormMatch:
    """Three point one four."""
    value = number_of(match["number"])
    for num_decimals, word in enumerate(WORD.findall(match["decimals"].lower()), start=1):
        value += Fraction(ONES[word], 10**num_decimals)
    return number_match(match, value)


def _multiple(match: re.Match[str], text: str) -> FormMatch:
    """A couple of, a score of, a gross of."""
    return number_match(match, number_of(match["number"]) * _MULTIPLES[match["word"].lower()])


def _mixed_number(match: re.Match[str], text: str) -> FormMatch | None:
    """8-1/2, or 1  1/2 with two spaces."""
    whole, numerator, denominator = map(int, match.groups())
    if not 0 < numerator < denominator:
        return None
    literal = fraction_literal(whole, numerator, denominator)
    return number_match(match, whole + Fraction(numerator, denominator), literal)


ENGLISH_SHARES = (
    NumberForm(
        "half after a unit",
        re.compile(
            rf"\b(?P<number>an?|{NUMBER})\s{{1,3}}(?P<unit>hours?|minutes?|days?|weeks?|months?|years?|miles?|yards?|feet|foot"
            r"|pounds?|cups?|dollars?|acres?|gallons?|liters?|meters?|kilometers?|kilograms?)\s{1,3}and\s{1,3}(?:a|one)[\s-]half\b"
            r"(?!\s(?:dozen|of|as|times))",
            IGNORE_CASE,
        ),
        _unit_and_a_half,
        "half",
    ),
    NumberForm(
        "mixed number in words",
        re.compile(
            rf"\b(?P<number>{NUMBER})\s{{1,3}}and\s{{1,3}}(?P<numerator>a|an|{ONE_TO_NINE})[\s-]{{1,2}}(?P<denominator>{_DENOMINATOR})s?\b"
            r"(?!\s(?:dozen|of|grade))",
            IGNORE_CASE,
        ),
        _mixed_in_words,
        " ".join(_DENOMINATORS),
    ),
    NumberForm(
        "decimal in words",
        re.compile(
            rf"\b(?P<number>{BELOW_100})\s{{1,3}}point(?P<decimals>(?:\s{{1,3}}(?:zero|{ONE_TO_NINE})\b){{1,6}})",
            IGNORE_CASE,
        ),
        _decimal_in_words,
        "point",
    ),
    NumberForm(
        "fraction in words",
        re.compile(
            rf"\b(?P<numerator>an?|{ONE_TO_NINE}|ten|eleven)(?:\s{{1,3}}|-)"
            rf"(?P<denominator>{_DENOMINATOR})(?P<plural>s)?\b",
            IGNORE_CASE,
        ),
        _fraction_in_words,
        " ".join(_DENOMINATORS),
    ),
    NumberForm(
        "couple, score, gross",
        re.compile(
            rf"\b(?P<number>a|an|{ONE_TO_NINE})\s{{1,3}}(?P<word>couple(?=\sof\s|\smore\s)|score(?=\sof\s[a-z])|gross(?=\sof\s[a-z]))"
            r"(?:\sof\b)?",
            IGNORE_CASE,
        ),
        _multiple,
        "couple score gross",
    ),
    NumberForm(
        "mixed number",
        re.compile(
            r"(?<![\d.,/+*=-])(?<![+*=/-] )(\d{1,3})(?:-|[ \u00a0]{2,4})(\d{1,2})[/⁄](\d{1,2})(?=[\s\"-]\s?[A-Za-z])"
        ),
        _mixed_number,
        "/ ⁄",
    ),
)

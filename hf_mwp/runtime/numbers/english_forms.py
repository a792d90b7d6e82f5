"""Forms of numbers in English texts: those of shares, amounts and times, and digits that are no numbers."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, NUMBER, ONE_TO_NINE, number_of
from .english_numerals import BELOW_100, ONES, TENS
from .english_shares import ENGLISH_SHARES
from .number_form import (
    CONTEXT,
    FormMatch,
    NumberForm,
    asks_for,
    find_scale,
    misread_number,
    no_number,
    number_match,
    text_around,
    text_before,
    unit_names,
)


_MISSPELLED = {"fourty": 40, "fourtie": 40, "ninty": 90, "ninteen": 19, "fourten": 14, "twelf": 12, "eightteen": 18}


def _below_zero(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]), unit=match["unit"])


def _negative(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]))


def _repeated(match: re.Match[str], text: str) -> FormMatch | None:
    """Five (5)."""
    value = number_of(match["word"])
    if value != int(match["digits"]):
        return None
    return number_match(match, value)


def _hyphenated(match: re.Match[str], text: str) -> FormMatch:
    """Twenty-four with a hyphen or dash outside of ASCII."""
    return number_match(match, number_of(match[0]))


def _misspelled(match: re.Match[str], text: str) -> FormMatch:
    value = _MISSPELLED[match["word"].lower()]
    if match["unit"]:
        value += ONES[match["unit"].lower()]
    return number_match(match, value, note=f"{match[0]} was read as {value}")


def _feet_and_inches(match: re.Match[str], text: str) -> FormMatch | None:
    """6'2\"."""
    feet = int(match["feet"])
    inches = int(match["inches"])
    if inches > 11:
        return None
    if asks_for("how many (?:more )?inches", text):
        return number_match(match, 12 * feet + inches, unit=" inches")
    return number_match(match, feet + Fraction(inches, 12), unit=" feet")


_SCALES_OF_UNITS = (
    {"hour": 3600, "minute": 60, "second": 1},
    {"yard": 36, "foot": 12, "feet": 12, "inch": 1, "inche": 1},
    {"pound": 16, "ounce": 1},
    {"meter": 100, "centimeter": 1},
    {"year": 12, "month": 1},
    {"week": 7, "day": 1},
)
_UNITS_OF_COMPOUNDS = unit_names(_SCALES_OF_UNITS)
_UNIT_STEMS = ("hour", "minute", "yard", "foot", "feet", "pound", "meter", "year", "week")
"""Names of the larger units, of which a compound has one."""


def _compound(match: re.Match[str], text: str) -> FormMatch | None:
    """2 hours 15 minutes: one number in the unit that is asked for, or in the larger unit."""
    large = match["large"].lower()
    small = match["small"].lower()
    units = find_scale(_SCALES_OF_UNITS, large, small)
    if units is None:
        return None
    smallest = number_of(match["first"]) * units[large] + number_of(match["second"]) * units[small]
    unit = large
    if asks_for(rf"how (?:many|much)(?: \w+)? {small}", text):
        unit = small
    name = unit if unit == "feet" else f"{unit}s"
    return number_match(match, smallest / units[unit], unit=f" {name}")


_TIME_WORDS = re.compile(
    r"\b(?:start|beg[ia]n|end|finish|leave|left|arrive|depart|until|till|open|close|o'clock|a\.?m|p\.?m|noon)",
    re.IGNORECASE,
)


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """3:45, 5:15 p.m.: in minutes if minutes are asked for, otherwise in hours."""
    hours = int(match["hours"])
    minutes = int(match["minutes"])
    around = text_around(match, text)
    if hours > 24 or minutes > 59 or not _TIME_WORDS.search(around) or "ratio" in around.lower():
        return None
    half_day = (match["half_day"] or "").lower().replace(".", "")
    # 12 hours are added only if the text also has times before noon: "from 3:45 to 5:15 p.m."
    has_morning = re.search(r"\ba\.?m\b|\b12:", around, re.IGNORECASE) is not None
    if half_day == "pm" and has_morning and hours < 12:
        hours += 12
    minutes += 60 * hours
    if asks_for("how many (?:more )?minutes", text):
        return number_match(match, minutes)
    return number_match(match, Fraction(minutes, 60))


_AGE_WORDS = re.compile(r"\b(?:ages?|old|older|young|younger|years?|born)\b", re.IGNORECASE)


def _ordinal(match: re.Match[str], text: str) -> FormMatch | None:
    """On the 2nd day he sold 15 cups. It may be a number of the problem in a question and after "by the"."""
    end = _SENTENCE_END.search(text, match.end(), match.end() + CONTEXT)
    is_in_question = end is not None and end[0] == "?"
    if not match["grade"] and (is_in_question or _COUNTED_ORDINAL.search(text_before(match, text))):
        return None
    return no_number(match, text)


def _year(match: re.Match[str], text: str) -> FormMatch | None:
    """In 2019: no number unless the text is about years."""
    if _AGE_WORDS.search(text[-CONTEXT:]):
        return None
    return no_number(match, text)


def _age(match: re.Match[str], text: str) -> FormMatch | None:
    """A 5-year-old boy: no number unless the text is about ages."""
    if _AGE_WORDS.search(text[match.end() : match.end() + CONTEXT]):
        return None
    return FormMatch(*match.span("age"), None)


def _one(match: re.Match[str], text: str) -> FormMatch | None:
    """Kim had one cat. "Each teacher has one group" is no number of the calculation."""
    if re.search(r"\b(?:each|every)\b", match["before"], re.IGNORECASE):
        return None
    return number_match(match, 1, group="one")


def _joined(match: re.Match[str], text: str) -> FormMatch:
    """1 250 seats, 1.250 euros."""
    digits = re.sub("[ .]", "", match[0])
    return number_match(match, int(digits), note=f"{match[0]} was read as {digits}")


_SENTENCE_END = re.compile(r"[?!]|\.(?!\d)")
_COUNTED_ORDINAL = re.compile(r"\b(?:every|each|by the|after the|before the|until the)\s\Z", re.IGNORECASE)
_TENS = "|".join(TENS)

ENGLISH_FORMS = (
    *ENGLISH_SHARES,
    NumberForm(
        "below zero",
        re.compile(
            rf"(?<![\d.,-])(?P<number>{NUMBER})(?P<unit>\s?(?:degrees?|°)(?:\s?[CF]\b|\s(?:Celsius|Fahrenheit))?)\s{{1,3}}below\s{{1,3}}zero\b",
            IGNORE_CASE,
        ),
        _below_zero,
        "below",
    ),
    NumberForm(
        "negative",
        re.compile(rf"(?:\bnegative|(?:\A|(?<=\bis )|(?<=\bwas ))minus)\s(?P<number>{NUMBER})", IGNORE_CASE),
        _negative,
        "negative minus",
    ),
    NumberForm(
        "word and digits",
        re.compile(rf"\b(?P<word>{BELOW_100})\s?\(\s?(?P<digits>\d{{1,3}})\s?\)", IGNORE_CASE),
        _repeated,
        "(",
    ),
    NumberForm(
        "hyphens",
        re.compile(rf"\b(?:{_TENS})[\u2010-\u2014](?:{ONE_TO_NINE})\b", re.IGNORECASE),
        _hyphenated,
        "\u2010 \u2011 \u2012 \u2013 \u2014",
    ),
    NumberForm(
        "misspelled words",
        re.compile(rf"\b(?P<word>{'|'.join(_MISSPELLED)})\b(?:[\s-](?P<unit>{ONE_TO_NINE})\b)?", IGNORE_CASE),
        _misspelled,
    ),
    NumberForm(
        "feet and inches",
        re.compile(r"(?<![\d'’])(?P<feet>\d{1,2})['’′]\s?(?P<inches>\d{1,2})(?:[\"”″]|''|’’)"),
        _feet_and_inches,
        "' ’ ′",
    ),
    NumberForm(
        "several units",
        re.compile(
            rf"\b(?P<first>an?|{NUMBER})[\s-](?P<large>{_UNITS_OF_COMPOUNDS})s?,?\s(?:and\s)?"
            rf"(?P<second>{NUMBER})[\s-](?P<small>{_UNITS_OF_COMPOUNDS})s?\b",
            IGNORE_CASE,
        ),
        _compound,
        " ".join(_UNIT_STEMS),
    ),
    NumberForm(
        "clock time",
        re.compile(
            r"(?<![\d:.$])(?P<hours>\d{1,2}):(?P<minutes>\d\d)(?![\d:.]\d)(?:\s?(?P<half_day>[ap]\.m\.|[ap]m\b))?",
            IGNORE_CASE,
        ),
        _clock_time,
        ":",
    ),
    NumberForm(
        "European groups",
        re.compile(
            r"(?<![\d.,])\d{1,3}(?:\.\d{3}){1,4}(?=\s?(?:€|euros?\b))|(?<=€)\d{1,3}(?:\.\d{3}){1,4}(?![\d.])",
            IGNORE_CASE,
        ),
        _joined,
        "€ euro",
    ),
    NumberForm(
        "groups after spaces",
        re.compile(r"(?<![\d.,$] )(?<![\d.,])\d{1,3}(?: \d{3}){1,4}(?=\s(?!and\b|or\b|to\b)[a-z]{3})"),
        _joined,
    ),
    NumberForm(
        "text recognition",
        re.compile(r"(?<![A-Za-z\d.,$])(?:[lI|]\d{1,4}|\d{1,3}[oO]{1,3}\d{0,3}|\d{1,3}·\d{1,2})(?=\s[a-z]{3})"),
        misread_number,
        "l i | o ·",
    ),
    NumberForm(
        "ordinals",
        re.compile(
            r"(?<![\d.,/])\d{1,3}(?:st|nd|rd|th)"
            r"(?=(?: and \d{1,2}(?:st|nd|rd|th))? (?:(?P<grade>grade)|day|week|month|time|round|game)r?s?\b)"
        ),
        _ordinal,
        "st nd rd th",
    ),
    NumberForm(
        "years",
        re.compile(r"\b[Ii]n (?:19|20)\d\d\b(?:,? (?:and )?(?:19|20)\d\d\b){0,4}(?! \d)"),
        _year,
        "in",
    ),
    NumberForm(
        "ages of persons",
        re.compile(r"(?<![\d.,/])(?P<age>\d{1,3})[- ]years?[- ]old (?=(?:boy|girl|man|woman|child|student|kid)\b)"),
        _age,
        "old",
    ),
    NumberForm(
        "one",
        re.compile(
            r"(?P<before>[^.?!]{0,40})\b(?:had|has|have|got|bought|found|ate) (?P<one>one)(?= [a-z]{3})"
            r"(?! (?:of|more|less|for|hundred|thousand|million|dozen|half|third|fourth|quarter|day|week|time)\b)"
        ),
        _one,
        "one",
    ),
    NumberForm(
        "names",
        re.compile(
            r"\b(?:Room|Route|Highway|Interstate|Flight|Bus|Class|Platform|Exit|Building|Train|Team|Group|Box)"
            r" \d{1,4}\b"
            # "He can clean his room 4 minutes faster" has a number.
            r"|\b(?:room|route|highway|flight) \d{1,4}"
            r"(?=[.,;?!]|\s(?:has|have|had|is|are|was|were|and|to|from|on|in)\b)"
            r"|\bI-\d{1,3}\b"
            r"|\b(?:[Mm][Pp][34]|H2O|CO2|B12|B6|A4|5G)\b"
            r"|\b\d{1,5}(?= [A-Z][a-z]{2,12} (?:Street|St|Avenue|Ave|Road|Rd|Lane|Drive)\b)"
        ),
        no_number,
    ),
)
"""Forms that are read in each English text, in the order in which they are tried."""

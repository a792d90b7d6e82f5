"""Forms of numbers in English texts: two thirds, an hour and a half, three point five, a couple of, 8-1/2."""

import re
from fractions import Fraction

from .english_numerals import BELOW_100, DIGITS, TENS, words_value
from .number_form import (
    CONTEXT,
    FormMatch,
    NumberForm,
    find_scale,
    fraction_literal,
    misread_number,
    no_number,
    number_match,
    unit_names,
)


_WORD = re.compile("[a-z]+")
_DIGITS = r"\d{1,9}(?:\.\d{1,6})?"
_NUMBER = rf"(?:{_DIGITS}|{BELOW_100}\b)"
_PARTS = {
    "half": 2, "third": 3, "fourth": 4, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_PART = "|".join(_PARTS)
_MULTIPLES = {"couple": 2, "score": 20, "gross": 144}
_MISSPELLED = {"fourty": 40, "fourtie": 40, "ninty": 90, "ninteen": 19, "fourten": 14, "twelf": 12, "eightteen": 18}


def number_of(written: str) -> Fraction:
    """Return the value of digits or of a number word below 100."""
    if written[:1].isdecimal():
        return Fraction(written)
    words = _WORD.findall(written.lower())
    return Fraction(1 if words[0] in ("a", "an") else words_value(words))


def _unit_and_a_half(match: re.Match[str], text: str) -> FormMatch:
    """An hour and a half, 3 miles and a half."""
    unit = match["unit"]
    if match["number"].lower() in ("a", "an", "one"):
        unit = f"{unit}s"
    return number_match(match, number_of(match["number"]) + Fraction(1, 2), unit=f" {unit}")


def _mixed_in_words(match: re.Match[str], text: str) -> FormMatch:
    """Two and a quarter, 3 and two thirds."""
    denominator = _PARTS[match["part"].lower()]
    value = number_of(match["number"]) + number_of(match["numerator"]) / denominator
    return number_match(match, value)


def _fraction_in_words(match: re.Match[str], text: str) -> FormMatch | None:
    """Two thirds, three-fourths of, a quarter of."""
    numerator, plural = match["numerator"].lower(), bool(match["plural"])
    denominator = _PARTS[match["part"].lower()]
    followed = re.match(r"\s+(?:of|the|as)\b", text[match.end() : match.end() + 8]) is not None
    single = numerator in ("a", "an", "one")
    # "a third grade", "two quarters" of a dollar and "the two fifth graders" are no fractions.
    if single and (plural or not (followed or "-" in match[0])):
        return None
    if not single and (not plural or (denominator == 4 and not followed and "-" not in match[0])):
        return None
    value = number_of(numerator)
    return number_match(match, value / denominator, fraction_literal(0, int(value), denominator))


def _decimal_in_words(match: re.Match[str], text: str) -> FormMatch:
    decimals = "".join(str(DIGITS.index(word)) for word in _WORD.findall(match["decimals"].lower()))
    return number_match(match, number_of(match["number"]) + Fraction(int(decimals), 10 ** len(decimals)))


def _multiple(match: re.Match[str], text: str) -> FormMatch:
    """A couple of, a score of, a gross of."""
    return number_match(match, number_of(match["number"]) * _MULTIPLES[match["word"].lower()])


def _mixed_number(match: re.Match[str], text: str) -> FormMatch | None:
    """8-1/2, or 1  1/2 with two spaces."""
    whole, numerator, denominator = (int(part) for part in match.groups())
    if not 0 < numerator < denominator:
        return None
    return number_match(
        match, whole + Fraction(numerator, denominator), fraction_literal(whole, numerator, denominator)
    )


def _below_zero(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]), unit=match["unit"])


def _negative(match: re.Match[str], text: str) -> FormMatch:
    return number_match(match, -number_of(match["number"]))


def _repeated(match: re.Match[str], text: str) -> FormMatch | None:
    """Five (5)."""
    value = number_of(match["word"])
    return number_match(match, value) if value == int(match["digits"]) else None


def _hyphenated(match: re.Match[str], text: str) -> FormMatch:
    """Twenty-four with a hyphen or dash outside of ASCII."""
    return number_match(match, words_value(_WORD.findall(match[0].lower())))


def _misspelled(match: re.Match[str], text: str) -> FormMatch:
    value = _MISSPELLED[match["word"].lower()] + (DIGITS.index(match["unit"].lower()) if match["unit"] else 0)
    return number_match(match, value, note=f"{match[0]} was read as {value}")


def _feet_and_inches(match: re.Match[str], text: str) -> FormMatch | None:
    """6'2\"."""
    feet, inches = int(match["feet"]), int(match["inches"])
    if inches > 11:
        return None
    if re.search(r"how many (?:more )?inches", text[-CONTEXT:], re.IGNORECASE):
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


def _compound(match: re.Match[str], text: str) -> FormMatch | None:
    """2 hours 15 minutes: one number in the unit that is asked for, or in the larger unit."""
    large = match["large"].lower()
    small = match["small"].lower()
    units = find_scale(_SCALES_OF_UNITS, large, small)
    if units is None:
        return None
    smallest = number_of(match["first"]) * units[large] + number_of(match["second"]) * units[small]
    asked_small = re.search(rf"how (?:many|much)(?: \w+)? {small}", text[-CONTEXT:], re.IGNORECASE) is not None
    unit = small if asked_small else large
    plural = "" if unit == "feet" else "s"
    return number_match(match, smallest / units[unit], unit=f" {unit}{plural}")


_TIME_WORDS = re.compile(
    r"\b(?:start|beg[ia]n|end|finish|leave|left|arrive|depart|until|till|open|close|o'clock|a\.?m|p\.?m|noon)",
    re.IGNORECASE,
)


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """3:45, 5:15 p.m.: in minutes if minutes are asked for, otherwise in hours."""
    hours, minutes = int(match["hours"]), int(match["minutes"])
    around = text[max(0, match.start() - CONTEXT) : match.end() + CONTEXT]
    if hours > 24 or minutes > 59 or not _TIME_WORDS.search(around) or "ratio" in around.lower():
        return None
    half_day = (match["half_day"] or "").lower().replace(".", "")
    # 12 hours are added only if the text also has times before noon: "from 3:45 to 5:15 p.m."
    has_morning = re.search(r"\ba\.?m\b|\b12:", around, re.IGNORECASE) is not None
    if half_day == "pm" and has_morning and hours < 12:
        hours += 12
    minutes += 60 * hours
    if re.search(r"how many (?:more )?minutes", text[-CONTEXT:], re.IGNORECASE):
        return number_match(match, minutes)
    return number_match(match, Fraction(minutes, 60))


_AGE_WORDS = re.compile(r"\b(?:ages?|old|older|young|younger|years?|born)\b", re.IGNORECASE)


def _ordinal(match: re.Match[str], text: str) -> FormMatch | None:
    """On the 2nd day he sold 15 cups. It may be a number of the problem in a question and after "by the"."""
    before = text[max(0, match.start() - CONTEXT) : match.start()]
    after = _SENTENCE_END.search(text, match.end(), match.end() + CONTEXT)
    is_asked = after is not None and after[0] == "?"
    if not match["grade"] and (is_asked or _COUNTED_ORDINAL.search(before)):
        return None
    return no_number(match, text)


def _year(match: re.Match[str], text: str) -> FormMatch | None:
    """In 2019: no number unless the text is about years."""
    return None if _AGE_WORDS.search(text[-CONTEXT:]) else no_number(match, text)


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


def _european(match: re.Match[str], text: str) -> FormMatch:
    digits = match[0].replace(".", "")
    return number_match(match, int(digits), note=f"{match[0]} was read as {digits}")


def _joined(match: re.Match[str], text: str) -> FormMatch:
    """1 250 seats."""
    digits = match[0].replace(" ", "")
    return number_match(match, int(digits), note=f"{match[0]} was read as {digits}")


_SENTENCE_END = re.compile(r"[?!]|\.(?!\d)")
_COUNTED_ORDINAL = re.compile(r"\b(?:every|each|by the|after the|before the|until the)\s\Z", re.IGNORECASE)
_IGNORE_CASE = re.IGNORECASE | re.ASCII
_ONE_WORD = "|".join(DIGITS[1:])
_TENS = "|".join(TENS)

ENGLISH_FORMS = (
    NumberForm(
        "half after a unit",
        re.compile(
            rf"\b(?P<number>an?|{_NUMBER})\s{{1,3}}(?P<unit>hours?|minutes?|days?|weeks?|months?|years?|miles?|yards?|feet|foot"
            r"|pounds?|cups?|dollars?|acres?|gallons?|liters?|meters?|kilometers?|kilograms?)\s{1,3}and\s{1,3}(?:a|one)[\s-]half\b"
            r"(?!\s(?:dozen|of|as|times))",
            _IGNORE_CASE,
        ),
        _unit_and_a_half,
        "half",
    ),
    NumberForm(
        "mixed number in words",
        re.compile(
            rf"\b(?P<number>{_NUMBER})\s{{1,3}}and\s{{1,3}}(?P<numerator>a|an|{_ONE_WORD})[\s-]{{1,2}}(?P<part>{_PART})s?\b"
            r"(?!\s(?:dozen|of|grade))",
            _IGNORE_CASE,
        ),
        lambda match, text: None if match["part"].lower() == "half" else _mixed_in_words(match, text),
        "and",
    ),
    NumberForm(
        "decimal in words",
        re.compile(
            rf"\b(?P<number>{BELOW_100})\s{{1,3}}point(?P<decimals>(?:\s{{1,3}}(?:zero|{_ONE_WORD})\b){{1,6}})",
            _IGNORE_CASE,
        ),
        _decimal_in_words,
        "point Point",
    ),
    NumberForm(
        "fraction in words",
        re.compile(
            rf"\b(?P<numerator>an?|{_ONE_WORD}|ten|eleven)(?:\s{{1,3}}|-)"
            rf"(?P<part>{_PART.replace('half|', '')})(?P<plural>s)?\b",
            _IGNORE_CASE,
        ),
        _fraction_in_words,
    ),
    NumberForm(
        "couple, score, gross",
        re.compile(
            rf"\b(?P<number>a|an|{_ONE_WORD})\s{{1,3}}(?P<word>couple(?=\sof\s|\smore\s)|score(?=\sof\s[a-z])|gross(?=\sof\s[a-z]))"
            r"(?:\sof\b)?",
            _IGNORE_CASE,
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
    NumberForm(
        "below zero",
        re.compile(
            rf"(?<![\d.,-])(?P<number>{_NUMBER})(?P<unit>\s?(?:degrees?|°)(?:\s?[CF]\b|\s(?:Celsius|Fahrenheit))?)\s{{1,3}}below\s{{1,3}}zero\b",
            _IGNORE_CASE,
        ),
        _below_zero,
        "below",
    ),
    NumberForm(
        "negative",
        re.compile(rf"(?:\bnegative|(?:\A|(?<=\bis )|(?<=\bwas ))minus)\s(?P<number>{_NUMBER})", _IGNORE_CASE),
        _negative,
        "egative inus",
    ),
    NumberForm(
        "word and digits",
        re.compile(rf"\b(?P<word>{BELOW_100})\s?\(\s?(?P<digits>\d{{1,3}})\s?\)", _IGNORE_CASE),
        _repeated,
        "(",
    ),
    NumberForm(
        "hyphens",
        re.compile(rf"\b(?:{_TENS})[\u2010-\u2014](?:{_ONE_WORD})\b", re.IGNORECASE),
        _hyphenated,
        "\u2010 \u2011 \u2012 \u2013 \u2014",
    ),
    NumberForm(
        "misspelled words",
        re.compile(rf"\b(?P<word>{'|'.join(_MISSPELLED)})\b(?:[\s-](?P<unit>{_ONE_WORD})\b)?", _IGNORE_CASE),
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
            rf"\b(?P<first>an?|{_NUMBER})[\s-](?P<large>{_UNITS_OF_COMPOUNDS})s?,?\s(?:and\s)?"
            rf"(?P<second>{_NUMBER})[\s-](?P<small>{_UNITS_OF_COMPOUNDS})s?\b",
            _IGNORE_CASE,
        ),
        _compound,
    ),
    NumberForm(
        "clock time",
        re.compile(
            r"(?<![\d:.$])(?P<hours>\d{1,2}):(?P<minutes>\d\d)(?![\d:.]\d)(?:\s?(?P<half_day>[ap]\.m\.|[ap]m\b))?",
            _IGNORE_CASE,
        ),
        _clock_time,
        ":",
    ),
    NumberForm(
        "European groups",
        re.compile(
            r"(?<![\d.,])\d{1,3}(?:\.\d{3}){1,4}(?=\s?(?:€|euros?\b))|(?<=€)\d{1,3}(?:\.\d{3}){1,4}(?![\d.])",
            _IGNORE_CASE,
        ),
        _european,
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
        "l I | o O ·",
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
        "In in",
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

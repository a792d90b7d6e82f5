"""Forms of fractions, halves and multiples in English texts: two thirds, an hour and a half, a couple of, 8-1/2."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, NUMBER, ONE_TO_NINE, WORD, after_words, number_of
from .english_numerals import BELOW_100, ONES
from .number_form import FormMatch, NumberForm, asks_for, fraction_literal, number_match


_DENOMINATORS = {
    "half": 2, "third": 3, "fourth": 4, "quarter": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8, "ninth": 9,
    "tenth": 10, "twelfth": 12, "sixteenth": 16, "twentieth": 20, "hundredth": 100, "thousandth": 1000,
}  # fmt: skip
_DENOMINATOR_NAMES = [name for name in _DENOMINATORS if name != "half"]
_DENOMINATOR = "|".join(_DENOMINATOR_NAMES)
_AFTER_FRACTION = re.compile(r"\s+(?:of|the|as|full|empty|done|finished|complete)\b")
_AFTER_PART = re.compile(
    r"\s(?:off|down|left|gone|cheaper)(?=[.,;:?!]|\s*\Z|\s(?:on|at|in|for|and|to|how|the|today|now)\b)"
)
_PRICE_SIGN = re.compile(r"[$£€]|\b(?:price|cost|sale)")
_COINS = re.compile(r"\b(?:dimes?|nickels?|penn(?:y|ies)|coins?|quarters)\b", re.IGNORECASE)
_QUARTER_OF = re.compile(
    r"\b(?:one|1|a|an|two|three)[ -](?:third|half|quarter|fourth|fifth|sixth|eighth)s? of (?:an?|the|his|her|it)\b",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.,;:?!]|\s*\Z|\s(?:and|how|so|what)\b")
_AFTER_CHANGE = re.compile(r"[.,;?!]|\s*\Z|\s(?:from|to|in|on|since|this|last|each|every|and|when|after)\b")
_MULTIPLES = {"couple": 2, "score": 20, "gross": 144}
_SCALES = {"dozen": 12, "hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_SCALE = "|".join(_SCALES)
_UNIT = (
    "hour|minute|day|week|month|year|mile|yard|foot|inch|pound|cup|dollar|acre|gallon|quart|liter|litre|meter|metre"
    "|kilometer|kilometre|kilogram|kilo|ton|teaspoon|tablespoon"
)
# "a pound and a half of ham" is 1.5 pounds, "2 cups and a half of the milk" are two amounts.
_OF_A_THING = r"\sof\s(?:the|an?|his|her|their|its|my|our|it|them|that|this|these|those)\b"


_OF_A_NUMBER = re.compile(rf"\sof\s{NUMBER}")


def _unit_and_a_part(match: re.Match[str], text: str) -> FormMatch:
    """An hour and a half, 3 miles and a quarter."""
    unit = match["unit"]
    if match["number"].lower() in ("a", "an", "one"):
        unit = _plural(unit)
    part = Fraction(1, _DENOMINATORS[match["denominator"].lower()])
    return number_match(match, number_of(match["number"]) + part, unit=f" {unit}")


def _scale_and_a_half(match: re.Match[str], text: str) -> FormMatch:
    """A million and a half, two dozen and a half."""
    value = number_of(match["number"]) + Fraction(1, 2)
    return number_match(match, value * _SCALES[match["scale"].lower()])


def _and_a_half_dozen(match: re.Match[str], text: str) -> FormMatch:
    """One and a half dozen."""
    return number_match(match, (number_of(match["number"]) + Fraction(1, 2)) * 12)


def _half_a_scale(match: re.Match[str], text: str) -> FormMatch:
    """Half a million, half-a-dozen."""
    return number_match(match, Fraction(_SCALES[match["scale"].lower()], 2))


def _half_of_a_unit(match: re.Match[str], text: str) -> FormMatch:
    """Half an hour, half a pound, every half hour; 30 minutes if minutes are asked for."""
    if match["unit"].lower() == "hour" and asks_for(r"how many (?:\w+ )?min(?:ute)?s\b|\bin minutes", text):
        return number_match(match, 30, unit=" minutes")
    return number_match(match, Fraction(1, 2), unit=f" {_plural(match['unit'])}")


def _and_half_units(match: re.Match[str], text: str) -> FormMatch:
    """1 and half hours."""
    return number_match(match, number_of(match["number"]) + Fraction(1, 2))


def _quarter_of_a_unit(match: re.Match[str], text: str) -> FormMatch:
    """A quarter mile, three-quarter hour."""
    return number_match(match, number_of(match["number"]) / 4, group="quarters")


def _quarters_of_an_hour(match: re.Match[str], text: str) -> FormMatch:
    """Three quarters of an hour; 45 minutes if minutes are asked for."""
    value = Fraction(3 if match["three"] else 1, 4)
    if asks_for(r"how many (?:\w+ )?min(?:ute)?s\b|\bin minutes", text):
        return number_match(match, 60 * value, unit=" minutes")
    return number_match(match, value, unit=" hours")


def _plural(unit: str) -> str:
    """Return the plural of a unit in the singular."""
    if unit.lower() == "foot":
        return "feet"
    if unit.lower() == "inch":
        return "inches"
    if unit.lower().endswith(("ch", "sh", "s", "x")):
        return f"{unit}es"
    return f"{unit}s"


def _mixed_in_words(match: re.Match[str], text: str) -> FormMatch:
    """Two and a quarter, 3 and two thirds, two & a half."""
    if match["number_before_sign"]:
        return number_match(match, number_of(match["number_before_sign"]) + Fraction(1, 2))
    denominator = _DENOMINATORS[match["denominator"].lower()]
    value = number_of(match["number"]) + number_of(match["numerator"]) / denominator
    return number_match(match, value)


def _fraction_in_words(match: re.Match[str], text: str) -> FormMatch | None:
    """Two thirds, three-fourths of, a quarter of, reduced by one third."""
    numerator = number_of(match["numerator"])
    denominator = _DENOMINATORS[match["denominator"].lower()]
    is_clear = "-" in match[0] or _AFTER_FRACTION.match(text[match.end() : match.end() + 8]) is not None
    if text.endswith(" by ", 0, match.start()):
        is_clear = is_clear or _AFTER_CHANGE.match(text, match.end()) is not None
    if _AFTER_PART.match(text, match.end()) and _PRICE_SIGN.search(text) and not _COINS.search(text):
        is_clear = True
    # He ate one quarter of a pizza, and she ate one quarter.
    if match["numerator"].lower() == "one" and _ENDS.match(text, match.end()) and _QUARTER_OF.search(text):
        is_clear = True
    # A game of four quarters of 12 minutes has no fraction.
    if numerator >= denominator and _OF_A_NUMBER.match(text, match.end()):
        return None
    # "a third grade", "two quarters" of a dollar and "the two fifth graders" are no fractions.
    if numerator == 1:
        is_fraction = is_clear and not match["plural"]
    else:
        is_fraction = match["plural"] and (is_clear or denominator != 4)
    if not is_fraction:
        return None
    return number_match(match, numerator / denominator, fraction_literal(0, int(numerator), denominator))


def _fraction_of_digits(match: re.Match[str], text: str) -> FormMatch | None:
    """3 fifths of, 1/4th of."""
    numerator = int(match["numerator"])
    if match["name"]:
        denominator = _DENOMINATORS[match["name"].lower()]
    else:
        denominator = int(match["denominator"])
    if not 0 < numerator < denominator:
        return None
    return number_match(match, Fraction(numerator, denominator), fraction_literal(0, numerator, denominator))


def _decimal_in_words(match: re.Match[str], text: str) -> FormMatch:
    """Three point one four, point five."""
    value = Fraction(0)
    if match["number"]:
        value = number_of(match["number"])
    for num_decimals, word in enumerate(WORD.findall(match["decimals"].lower()), start=1):
        value += Fraction(ONES[word], 10**num_decimals)
    note = ""
    if not match["number"]:
        note = f"{match[0]} was read as {float(value)}"
    return number_match(match, value, note=note)


def _multiple(match: re.Match[str], text: str) -> FormMatch:
    """A couple of, a score of, a gross of."""
    return number_match(match, number_of(match["number"]) * _MULTIPLES[match["word"].lower()])


def _times(match: re.Match[str], text: str) -> FormMatch:
    """4x as many, 4x more."""
    return number_match(match, number_of(match["number"]), unit=" times")


def _overtime(match: re.Match[str], text: str) -> FormMatch:
    """Time and a half, double time: multiples of a wage."""
    multiple = 2 if match["double"] else Fraction(3, 2)
    return number_match(match, multiple, unit=" times")


def _couple_of_a_scale(match: re.Match[str], text: str) -> FormMatch:
    """A couple dozen, a couple hundred."""
    return number_match(match, 2 * _SCALES[match["scale"].lower()])


def _mixed_number(match: re.Match[str], text: str) -> FormMatch | None:
    """8-1/2, or 1  1/2 with two spaces."""
    whole, numerator, denominator = map(int, match.groups())
    if not 0 < numerator < denominator:
        return None
    literal = fraction_literal(whole, numerator, denominator)
    return number_match(match, whole + Fraction(numerator, denominator), literal)


ENGLISH_SHARES = (
    NumberForm(
        "part after a unit",
        re.compile(
            rf"\b(?P<number>an?|{NUMBER})\s{{1,3}}(?P<unit>(?:{_UNIT}|feet|inche)s?)\s{{1,3}}and\s{{1,3}}(?:a|one)[\s-]"
            rf"(?P<denominator>half|third|quarter)\b(?!\s(?:dozen|as|times|(?:{_UNIT})s?)\b|{_OF_A_THING})",
            IGNORE_CASE,
        ),
        _unit_and_a_part,
        "half third quarter",
    ),
    NumberForm(
        "things and a half",
        re.compile(
            rf"\b(?P<number>an?|{NUMBER})\s(?P<unit>(?!(?:{_SCALE}|half|third|quarter|time|lot|few|bit)s?\b)[a-z]{{3,12}})\sand\sa\s(?P<denominator>half)"
            rf"(?=[.,;:?!]|\s*\Z|\s(?:\d|each|every|per|a|an|in|for|at|on|and|twice|two|three|four|daily|to|with|from|left|is|are|of)\b)"
            rf"(?!\san?\s(?:{_UNIT})\b{_OF_A_THING})(?!{_OF_A_THING})",
            IGNORE_CASE,
        ),
        _unit_and_a_part,
        "half",
    ),
    NumberForm(
        "half after a scale",
        re.compile(rf"\b(?P<number>an?|{NUMBER})\s(?P<scale>{_SCALE})\sand\s(?:a|one)[\s-]half\b", IGNORE_CASE),
        _scale_and_a_half,
        "half",
    ),
    NumberForm(
        "half after dozens",
        re.compile(rf"\b(?P<number>{NUMBER})[\s-]and[\s-](?:a|one)[\s-]half[\s-]dozens?\b(?:\sof\b)?", IGNORE_CASE),
        _and_a_half_dozen,
        "dozen",
    ),
    NumberForm(
        "half of a scale",
        re.compile(r"\bhalf(?:-a-|\san?\s)(?P<scale>dozen|million|thousand|billion)\b", IGNORE_CASE),
        _half_a_scale,
        "half",
    ),
    NumberForm(
        "half without an article",
        re.compile(rf"\b(?P<number>{NUMBER})\sand\shalf(?=\s(?:{_UNIT}|feet|inche)s?\b)", IGNORE_CASE),
        _and_half_units,
        "half",
    ),
    NumberForm(
        "half of a unit",
        re.compile(
            rf"(?<!\band )(?<!-)\b(?:half\san?|a\shalf|{after_words('every each')}half)"
            r"\s(?P<unit>hour|minute|mile|pound|cup|gallon|liter|litre|kilo|kilogram|meter|yard)\b",
            IGNORE_CASE,
        ),
        _half_of_a_unit,
        "half",
    ),
    NumberForm(
        "quarter of a unit",
        re.compile(
            r"\b(?P<quarters>(?P<number>an?|three)[\s-]quarter)(?=[\s-](?:hour|mile|pound|cup|inch|acre|gallon|teaspoon)\b)",
            IGNORE_CASE,
        ),
        _quarter_of_a_unit,
        "quarter",
    ),
    NumberForm(
        "quarters of an hour",
        re.compile(r"\b(?:(?P<three>three)[\s-]quarters|an?\squarter)\sof\san\shour\b", IGNORE_CASE),
        _quarters_of_an_hour,
        "quarter",
    ),
    NumberForm(
        "mixed number in words",
        re.compile(
            rf"\b(?P<number>{NUMBER})(?:\s{{1,3}}and\s{{1,3}}|-and-)(?P<numerator>a|an|{ONE_TO_NINE})[\s-]{{1,2}}"
            rf"(?P<denominator>{_DENOMINATOR})s?\b(?!\s(?:dozen|of|grade))"
            rf"|\b(?P<number_before_sign>{NUMBER})\s&\s(?:a|one)[\s-]half\b",
            IGNORE_CASE,
        ),
        _mixed_in_words,
        " ".join(_DENOMINATORS),
    ),
    NumberForm(
        "decimal in words",
        re.compile(
            rf"\b(?:(?P<number>{BELOW_100})\s{{1,3}}"
            rf"|{after_words('is was of by to weighs weigh costs about ran only and')})"
            rf"point(?P<decimals>(?:\s{{1,3}}(?:zero|{ONE_TO_NINE})\b){{1,6}})(?!-)",
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
        " ".join(_DENOMINATOR_NAMES),
    ),
    NumberForm(
        "fraction of digits",
        re.compile(
            rf"(?<![\d.,/])(?P<numerator>\d{{1,2}})(?:[\s-](?P<name>{_DENOMINATOR})s(?=\s(?:of|as)\b)|/(?P<denominator>\d{{1,3}})(?:ths?|rds?|nds?)\b)",
            IGNORE_CASE,
        ),
        _fraction_of_digits,
    ),
    NumberForm(
        "times",
        re.compile(
            r"(?<![\d.,])(?P<number>\d{1,3}(?:\.\d{1,3})?)\s?[xX]"
            r"(?=\s(?:as|more|the|his|her|faster|bigger|longer|larger|heavier)\b)"
        ),
        _times,
        "x",
    ),
    NumberForm(
        "overtime",
        re.compile(
            r"\b(?:time[\s-]and[\s-]a[\s-]half|(?P<double>double[\s-]time))"
            r"(?=[.,;?!]|\s(?:for|on|after|pay|over|when|if|and|is)\b|\s*\Z)",
            IGNORE_CASE,
        ),
        _overtime,
        "time",
    ),
    NumberForm(
        "couple of a scale",
        re.compile(r"\ba\scouple\s(?:of\s)?(?P<scale>dozen|hundred|thousand|million)\b", IGNORE_CASE),
        _couple_of_a_scale,
        "couple",
    ),
    NumberForm(
        "couple, score, gross",
        re.compile(
            rf"\b(?P<number>a|an|{ONE_TO_NINE})\s{{1,3}}(?P<word>couple(?=\sof\s|\smore\s|\s(?:{_UNIT})s\b)"
            r"|score(?=\sof\s[a-z]|\sand\s|\syears\b)|gross(?=\sof\s[a-z]))"
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

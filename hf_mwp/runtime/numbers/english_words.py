"""Words in English texts that are numbers beside others: a litre for 200 ml glasses, from the third floor up."""

import re

from .english_numbers import IGNORE_CASE, MAX_SHORT
from .english_units import unit_of_a_price
from .number_form import FormMatch, NumberForm, number_match, text_before
from .unit_tables import UNITS, WRITTEN_NAMES, unit_names


_LARGER_UNITS = (
    "hour|minute|yard|foot|kilometer|kilometre|meter|metre|kilogram|kilo|kg|liter|litre|gallon|pound|dollar"
)
_QUANTITY = re.compile(rf"\d[ -]?({unit_names('en')})\b")
_ASKED = re.compile(rf"\b(?:how many(?: more| total)?|in) ({unit_names('en')})\b", re.IGNORECASE)
_RATE = re.compile(
    rf"\b(?:per|each|every|an?) (?:{unit_names('en')})\b|[/=%]|\b(?:1|one) [a-z]{{1,12}} (?:is|equals|has) \d"
)
_FAMILIAR = {UNITS["en"][name].measure for name in ("hours", "yards", "gallons", "dollars")}
_ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth fifteenth"
    " sixteenth seventeenth eighteenth nineteenth twentieth"
).split()
_ORDINAL = "|".join(_ORDINALS)
_FLOOR_BEFORE = re.compile(rf"\bfrom the (?:{_ORDINAL})(?: floor)?(?: (?:up|down))? to the \Z", re.IGNORECASE)
_SUFFIXES = {"1": "st", "2": "nd", "3": "rd"}


def _single_unit(match: re.Match[str], text: str) -> FormMatch | None:
    """A litre poured into 200 ml glasses: 1000 milliliters, if all other quantities have one smaller unit."""
    units = UNITS["en"]
    group = "quantity" if match["quantity"] else "first_quantity"
    unit = units[(match["unit"] or match["first_unit"]).lower()]
    if len(text) > MAX_SHORT and unit.measure in _FAMILIAR:
        return None
    # Rates keep their units.
    if unit_of_a_price(text, unit.measure) is not None or _RATE.search(
        text[: match.start(group)] + text[match.end(group) :]
    ):
        return None
    names = []
    for name in _QUANTITY.findall(text):
        if units[name].measure == unit.measure:
            names.append(name)
    sizes = {units[name].size for name in names}
    if len(sizes) != 1 or units[names[0]].size >= unit.size:
        return None
    for asked in _ASKED.findall(text):
        if units.get(asked.lower()) == unit:
            return None
    smaller = WRITTEN_NAMES["en"].get(names[0], names[0])
    ratio = unit.size / units[smaller].size
    note = f"{match[group]} was read as {ratio} {smaller}, the unit of the other quantities"
    return number_match(match, ratio, unit=f" {smaller}", note=note, group=group)


def _first_floor(match: re.Match[str], text: str) -> FormMatch:
    """The third in "from the third floor to the ninth floor"."""
    return _floor(match)


def _last_floor(match: re.Match[str], text: str) -> FormMatch | None:
    """The ninth in "from the third floor to the ninth floor"."""
    if _FLOOR_BEFORE.search(text_before(match, text)) is None:
        return None
    return _floor(match)


def _floor(match: re.Match[str]) -> FormMatch:
    """Return the number of an ordinal in words, which remains in the text as in 3rd."""
    number = 1 + _ORDINALS.index(match[0].lower())
    suffix = _SUFFIXES.get(str(number), "th")
    return number_match(match, number, unit=suffix)


ENGLISH_WORDS = (
    NumberForm(
        "single units",
        re.compile(
            rf"(?:\b(?:from|have|has|had|got|buys?|bought|with|into|share|split|cuts?|pours?|poured|fills?|divide|in)\s"
            rf"(?P<quantity>(?:an?|one)\s(?P<unit>{_LARGER_UNITS}))"
            rf"|(?:\A|(?<=[.?!]\s))(?P<first_quantity>(?:an?|one)\s(?P<first_unit>{_LARGER_UNITS}))"
            r"(?=(?:\sof\s[a-z]{1,12})?\s(?:is|was|gets|are)\s(?:split|cut|divided|poured|shared|used|filled|put)\b))",
            IGNORE_CASE,
        ),
        _single_unit,
        "litre liter metre meter kilo hour minute yard foot gallon pound dollar kg",
    ),
    NumberForm(
        "first floor of two",
        re.compile(
            rf"(?<=\bfrom the )(?:{_ORDINAL})(?=(?: floor)?(?: (?:up|down))? to the (?:{_ORDINAL}) floor\b)",
            IGNORE_CASE,
        ),
        _first_floor,
        "floor",
    ),
    NumberForm(
        "last floor of two",
        re.compile(rf"(?<=\bto the )(?:{_ORDINAL})(?= floor\b)", IGNORE_CASE),
        _last_floor,
        "floor",
    ),
)
"""Forms for solvers that were trained with converted units."""

"""Units to which the rates, areas and volumes of an English text tie its quantities: $18 a kilo, cubic feet, mph."""

import re

from .unit_tables import UNITS, unit_names


_UNIT = f"({unit_names('en')})"
# $18 a kilo, 80p per kg, 75 cents a pound; a kilo of cheese costs $18.
_PRICE = re.compile(
    rf"(?:[$£€]\s?\d[\d.,]{{0,9}}|\d\s?(?:dollars?|bucks|euros?|cents?|pence|p|c|¢))\s?(?:an?|per|each|every|/)\s?{_UNIT}\b"
    rf"|\b(?:an?|each|every|one|1|per) {_UNIT}(?: of [a-z]{{1,12}}){{0,1}} (?:costs?|sells? for|is|at) [$£€]\d",
    re.IGNORECASE,
)
# Prices of more than one unit, definitions and proportions: $3 per 100 g, 1 pound is 16 ounces.
_NO_SINGLE_PRICE = re.compile(
    r"\b(?:per|each|every) \d|=|\b(?:1|one) [a-z]{1,12} (?:is|equals|has) \d|\bratio\b", re.IGNORECASE
)
_POWER = re.compile(
    rf"\b(?:square|sq\.?|cubic|cu\.?)[ -]{_UNIT}\b|\b(ft|yd|in|[kcm]?m)(?:²|³|\^?[23]\b)", re.IGNORECASE
)
_ASKED_POWER = re.compile(r"\b(?:how many|in) (?:square|sq\.?|cubic|cu\.?) ", re.IGNORECASE)
_SPEED = re.compile(r"\d\s?(?:mph|km/h|kph|kmph)\b|\bmiles (?:per|an) hour\b", re.IGNORECASE)
_ABBREVIATIONS = {"yd": "yards", "in": "inches"}
# Forms of periods convert these: $200 a month for 2 years.
_PERIODS = {UNITS["en"][name].measure for name in ("weeks", "years")}


def unit_of_a_price(text: str, measure: int) -> str | None:
    """Return the unit of a measure for which a text has prices: a kilo in "$18 a kilo", or `None` if there is none."""
    if measure in _PERIODS or _NO_SINGLE_PRICE.search(text):
        return None
    names = []
    for price in _PRICE.finditer(text):
        name = _known_name(price[1] or price[2])
        if name is not None and UNITS["en"][name].measure == measure:
            names.append(name)
    return _common_unit(names)


def unit_of_areas(text: str, measure: int) -> str | None:
    """Return the unit of lengths whose square or cube all areas and volumes of a text have: feet in "how many cubic
    feet", or `None`."""
    names = []
    for power in _POWER.finditer(text):
        name = power[1] or power[2]
        name = _known_name(_ABBREVIATIONS.get(name.lower(), name))
        if name is not None and UNITS["en"][name].measure == measure:
            names.append(name)
    return _common_unit(names)


def asks_for_an_area(text: str) -> bool:
    """Return whether a text asks for an area or a volume in a unit: how many square feet."""
    return _ASKED_POWER.search(text) is not None


def unit_of_a_speed(text: str, measure: int) -> str | None:
    """Return hours for the times of a text with 50 mph, or `None`."""
    if measure == UNITS["en"]["hours"].measure and _SPEED.search(text):
        return "hours"
    return None


def _known_name(written: str) -> str | None:
    """Return the name of a unit as the table has it, or `None`."""
    if written in UNITS["en"]:
        return written
    lowered = written.lower()
    return lowered if lowered in UNITS["en"] else None


def _common_unit(names: list[str]) -> str | None:
    """Return the first of the names if all of them are of the same unit, or `None`."""
    sizes = {UNITS["en"][name].size for name in names}
    return names[0] if len(sizes) == 1 else None

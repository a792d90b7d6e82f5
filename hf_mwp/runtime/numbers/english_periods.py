"""Periods of rates in English texts: a year has 12 months if there is a rate for each month ($15 a month)."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from .english_numbers import IGNORE_CASE, MAX_SHORT, number_of
from .english_numerals import BELOW_100
from .number_form import FormMatch, NumberForm, number_match, text_around


@dataclass(frozen=True)
class _Period:
    """A unit of time that has several smaller ones."""

    unit: str  # smaller unit, in the singular
    num_units: int
    is_learned: bool = True  # whether the solvers know how many units it has


_PERIODS = {"year": _Period("month", 12), "week": _Period("day", 7), "fortnight": _Period("day", 14, is_learned=False)}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAMES = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"
_WORKING_HOURS = re.compile(r"\d\s?[ap]\.?m\b\.?\s?(?:to|till|until|[-–])\s?\d", IGNORE_CASE)
_MAX_NUMBER = 20  # "in 2008"
_OTHER_PERIODS = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:weekends?|weekdays?|school|workdays?|leap|interest|off)\b",
    IGNORE_CASE,
)


def _has_rate(unit: str, text: str) -> bool:
    """Return whether a text has a rate for each unit of time, and no number of such units."""
    if re.search(rf"(?:\d|\b{BELOW_100})[\s-]{unit}s?\b|\bhow many {unit}s\b", text, IGNORE_CASE):
        return False
    rate = rf"(?:\b(?:per|an?|each|every)\s|/\s?){unit}\b|\b(?:dai|month)ly\b"
    return re.search(rate, text, IGNORE_CASE) is not None


def _in_units_of_the_rate(match: re.Match[str], text: str) -> FormMatch | None:
    """A year in a text with "a month": 12 months."""
    around = text_around(match, text)
    period = _PERIODS[match["name"].lower()]
    number = number_of(match["number"])
    if match["half"]:
        number += Fraction(1, 2)
    is_known = period.is_learned and len(text) > MAX_SHORT
    if is_known or number > _MAX_NUMBER or _OTHER_PERIODS.search(around) or not _has_rate(period.unit, around):
        return None
    return _units_match(match, number * period.num_units, period.unit)


def _days(match: re.Match[str], text: str) -> FormMatch | None:
    """Monday to Friday, in a text with a rate for each day or working hours: 5 days."""
    first, last = (_WEEKDAYS.index(match[group][:3].lower()) for group in ("first", "last"))
    around = text_around(match, text)
    if last <= first or not (_has_rate("day", around) or _WORKING_HOURS.search(around)):
        return None
    return _units_match(match, last - first + 1, "day")


def _units_match(match: re.Match[str], value: Fraction | int, unit: str) -> FormMatch:
    read = number_match(match, value, unit=f" {unit}s")
    note = f"{match[0]} was read as {read.literal} {unit}s, because the text has a rate for each {unit}"
    return replace(read, note=note)


ENGLISH_PERIODS = (
    NumberForm(
        "periods of a rate in words",
        re.compile(
            rf"\b(?P<number>an?|\d{{1,2}}|{BELOW_100})\s(?P<name>year|week|fortnight)s?\b(?!['’-])"
            r"(?P<half>\sand\sa\shalf\b)?",
            IGNORE_CASE,
        ),
        _in_units_of_the_rate,
        "year week fortnight",
    ),
    NumberForm(
        "weekdays in words",
        re.compile(
            rf"\b(?:from\s)?(?P<first>{_DAY_NAMES})(?:\s(?:to|through|thru|till|until)\s|\s?[-–]\s?)"
            rf"(?P<last>{_DAY_NAMES})\b",
            IGNORE_CASE,
        ),
        _days,
        "day mon tue wed thu fri sat",
    ),
)
"""Forms for solvers that were trained with converted units, before those of several units."""

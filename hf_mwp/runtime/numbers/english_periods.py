"""Periods of rates in English texts: a year has 12 months if there is a rate for each month ($15 a month)."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from .english_clock import BEHIND_AN_HOUR, asks_for_a_duration
from .english_numbers import IGNORE_CASE, MAX_SHORT, number_of
from .english_numerals import BELOW_100
from .number_form import FormMatch, NumberForm, number_match, text_around


@dataclass(frozen=True)
class _Period:
    """A unit of time that has several smaller ones."""

    unit: str  # smaller unit, in the singular
    num_units: int
    is_learned: bool = True  # whether the solvers know how many units it has


# The first period whose unit has a rate counts.
_PERIODS = {
    "year": (_Period("month", 12), _Period("week", 52), _Period("fortnight", 26, is_learned=False)),
    "fortnight": (_Period("day", 14, is_learned=False),),
    "week": (_Period("weekday", 5, is_learned=False), _Period("day", 7)),
    "hour": (_Period("minute", 60),),
}
_PARTS_OF_DAYS = "(?:night|morning|afternoon|evening)"
# Words of rates for a unit, and of its number.
_RATES = {"day": rf"(?:day|{_PARTS_OF_DAYS})", "weekday": "(?:weekday|workday|working day|school day)"}
_ADVERBS = {"day": "daily", "week": "weekly", "fortnight": "fortnightly", "month": "monthly"}
_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_NAMES = r"(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tues?|wed|thu(?:rs?)?|fri|sat|sun"
_WORKING_HOURS = re.compile(
    r"\d\s?[ap]\.?m\b\.?\s?(?:to|till?|until|[-–])\s?\d|\d:\d\d\s?(?:to|till?|until|[-–])\s?\d"
    rf"|\b\d{{1,2}}\s?(?:to|till?|until|[-–])\s?\d{{1,2}}(?::\d\d)?{BEHIND_AN_HOUR}",
    IGNORE_CASE,
)
_MAX_NUMBER = 20  # "in 2008"
_OTHER_PERIODS = re.compile(
    r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)days?\b"
    r"|\b(?:weekends?|weekdays?|school|workdays?|working days?|leap|interest|off)\b",
    IGNORE_CASE,
)
_WEEKENDS = re.compile(r"\b(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|weekends?|off)\b", IGNORE_CASE)


def _has_rate(unit: str, text: str) -> bool:
    """Return whether a text has a rate for each unit of time, and no number of such units."""
    names = _RATES.get(unit, unit)
    if re.search(rf"(?:\d|\b{BELOW_100})[\s-]{names}s?\b|\bhow many {names}s\b", text, IGNORE_CASE):
        return False
    rate = rf"(?:\b(?:per|an?|each|every)\s|/\s?){unit}\b"
    if unit in _ADVERBS:
        rate += rf"|\b{_ADVERBS[unit]}\b"
    if unit == "day":
        # "In a morning" is no rate.
        rate += rf"|\b(?:per|each|every)\s{_PARTS_OF_DAYS}\b|\d[^.?!]{{0,40}}\sa\snight\b|/\s?night\b|\bnightly\b"
    elif unit == "weekday":
        # "He works 6 days a week" says how many they are.
        if re.search(rf"(?:\d|\b{BELOW_100})[\s-]days?\b", text, IGNORE_CASE):
            return False
        rate = rf"\b(?:per|each|every|on)\s{names}s?\b"
    elif unit == "minute":
        rate = r"\d[^.?!\d]{0,40}(?:\b(?:per|an?|each|every)\s|/\s?)minute\b"
    return re.search(rate, text, IGNORE_CASE) is not None


def _in_units_of_the_rate(match: re.Match[str], text: str) -> FormMatch | None:
    """A year in a text with "a month": 12 months; 2 weeks in a text with "every weekday": 10 weekdays."""
    around = text_around(match, text)
    number = number_of(match["number"])
    if match["half"] or match["half_before"]:
        number += Fraction(1, 2)
    if number > _MAX_NUMBER:
        return None
    for period in _PERIODS[match["name"].lower()]:
        if period.unit == "minute" and match["number"].lower() in ("a", "an"):
            continue
        other_periods = _WEEKENDS if period.unit == "weekday" else _OTHER_PERIODS
        is_known = period.is_learned and len(text) > MAX_SHORT
        if is_known or other_periods.search(around):
            continue
        if _has_rate(period.unit, around):
            return _units_match(match, number * period.num_units, period.unit)
    return None


def _days(match: re.Match[str], text: str) -> FormMatch | None:
    """Monday to Friday, in a text with a rate for each day or working hours: 5 days."""
    first, last = (_WEEKDAYS.index(match[group][:3].lower()) for group in ("first", "last"))
    around = text_around(match, text)
    if last <= first:
        return None
    has_working_hours = _WORKING_HOURS.search(around) is not None and asks_for_a_duration(match, text)
    if not _has_rate("day", around) and not has_working_hours:
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
            rf"\b(?<!\d\.)(?P<number>an?|\d{{1,2}}(?:\.\d)?|{BELOW_100})(?P<half_before>\sand\sa\shalf)?[\s-]"
            r"(?P<name>year|week|fortnight|hour)s?\b(?![’'-]|\s?old\b)(?P<half>\sand\sa\shalf\b)?",
            IGNORE_CASE,
        ),
        _in_units_of_the_rate,
        "year week fortnight hour",
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

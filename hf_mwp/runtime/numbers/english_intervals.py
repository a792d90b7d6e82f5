"""Forms of intervals between clock times in English texts: a shift from 9am to 5pm has 8 hours."""

import re
from fractions import Fraction

from .english_clock import (
    BEHIND_AN_HOUR,
    DURATION_SIGNS,
    HOURS,
    TIGHT_GAP,
    asks_for_a_duration,
    end_of_interval,
    has_clock_words,
)
from .english_numbers import IGNORE_CASE, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_beside


_OTHER_NUMBER = re.compile(r"\d")
_HALF_DAY = r"(?:a\.m\.|p\.m\.|[ap]m\b)"


def _minutes(hours: str, minutes: str | None, half_day: str) -> int | None:
    """Return the minutes from midnight to a time such as 9:30 am, or `None`."""
    hour = int(hours)
    if not 1 <= hour <= 12 or int(minutes or 0) > 59:
        return None
    if half_day.lower().startswith("p"):
        hour = hour % 12 + 12
    else:
        hour %= 12
    return 60 * hour + int(minutes or 0)


def _interval(match: re.Match[str], text: str) -> FormMatch | None:
    """9am to 5pm: 8 hours, if the text also has other numbers."""
    rest = text_beside(match, text)
    if not _OTHER_NUMBER.search(rest) or asks_for("what time|when", text):
        return None
    last_half_day = match["last_half_day"]
    last = _minutes(match["last_hours"], match["last_minutes"], last_half_day)
    first = _minutes(match["hours"], match["minutes"], match["half_day"] or last_half_day)
    if first is None or last is None:
        return None
    # From 9 to 5 pm, from 10 pm to 6 am.
    if match["half_day"] is None and first >= last:
        first -= 12 * 60
    return _duration_match(match, (last - first) % (24 * 60), text)


def _working_hours(match: re.Match[str], text: str) -> FormMatch | None:
    """Works 9 to 5:30: 8.5 hours, if the text also has other numbers."""
    if not _OTHER_NUMBER.search(text_beside(match, text)):
        return None
    if not asks_for_a_duration(match, text) or not has_clock_words(match, text):
        return None
    first = 60 * int(number_of(match["hours"]))
    last = 60 * int(number_of(match["last_hours"] or match["last"])) + int(match["last_minutes"] or 0)
    # From 5 to 9 is read as two numbers.
    if last > first or first > 24 * 60:
        return None
    return _duration_match(match, end_of_interval(first, last) - first, text)


def _duration_match(match: re.Match[str], duration: int, text: str) -> FormMatch:
    """Return a number of minutes in hours, or in minutes if these are asked for."""
    if asks_for(r"how many (?:\w+ )?minutes", text):
        return number_match(match, duration, unit=" minutes")
    return number_match(match, Fraction(duration, 60), unit=" hours")


ENGLISH_INTERVALS = (
    NumberForm(
        "intervals of time",
        re.compile(
            rf"\b(?:from\s|between\s)?(?<![\d:.$])(?P<hours>\d{{1,2}})(?::(?P<minutes>\d\d))?\s?(?P<half_day>{_HALF_DAY})?"
            r"(?:\s(?:to|till|until|and)\s|\s?[-–]\s?)"
            rf"(?P<last_hours>\d{{1,2}})(?::(?P<last_minutes>\d\d))?\s?(?P<last_half_day>{_HALF_DAY})",
            IGNORE_CASE,
        ),
        _interval,
        "am pm a.m. p.m.",
    ),
    NumberForm(
        "working hours",
        re.compile(
            rf"(?:\bfrom\s|(?P<between>\bbetween\s)|(?<![\w:.,$£€/-]))(?P<hours>{HOURS})(?:{TIGHT_GAP}|(?(between)\sand\s|(?!)))"
            rf"(?:(?P<last_hours>{HOURS})\b|(?P<last>\d{{1,2}}):(?P<last_minutes>[0-5]\d)){BEHIND_AN_HOUR}",
            IGNORE_CASE,
        ),
        _working_hours,
        DURATION_SIGNS,
    ),
)
"""Forms for solvers that were trained with converted units, before those of clock times."""

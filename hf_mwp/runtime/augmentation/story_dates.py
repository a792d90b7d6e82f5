"""Dates in generated problems, and the number of days between them."""

import random
from dataclasses import dataclass
from datetime import date, timedelta


COUNTED_ENDS = {"both": 1, "one": 0, "none": -1}
"""Number of days to add to the difference of two dates, if both, one or none of the dates are counted."""

_YEAR = 2025  # like all common years
_FIRST_DAYS = 300  # days of the year on which an interval may begin
_LENGTHS = range(3, 60)  # differences of the dates, in days
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_ENDINGS = {1: "st", 2: "nd", 3: "rd", 21: "st", 22: "nd", 23: "rd", 31: "st"}


@dataclass(frozen=True)
class StoryDates:
    """Two dates as they are written in a text, and the number of days between them."""

    start: str
    end: str
    num_days: int


def choose_dates(counted_ends: str, language: str, rng: random.Random) -> StoryDates:
    """Return two dates of a year; `counted_ends` is a key of `COUNTED_ENDS`."""
    first = date(_YEAR, 1, 1) + timedelta(rng.randrange(_FIRST_DAYS))
    length = rng.choice(_LENGTHS)
    last = first + timedelta(length)
    write = {"en": _in_english, "zh": _in_chinese}[language]
    start, end = write(first, last, rng)
    return StoryDates(start, end, length + COUNTED_ENDS[counted_ends])


def _in_chinese(first: date, last: date, rng: random.Random) -> tuple[str, str]:
    """7月5日 and 8月20日, 7月5号 and 16号."""
    day = rng.choice("日号")
    end = f"{last.day}{day}"
    if last.month != first.month or rng.random() < 0.7:
        end = f"{last.month}月{end}"
    return f"{first.month}月{first.day}{day}", end


def _in_english(first: date, last: date, rng: random.Random) -> tuple[str, str]:
    """July 5 and August 20, July 5th and August 20th, 5 July and 20 August."""
    pattern = rng.choice(("{month} {day}", "{month} {day}{ending}", "{day} {month}"))
    dates = []
    for day in (first, last):
        ending = _ENDINGS.get(day.day, "th")
        dates.append(pattern.format(month=_MONTHS[day.month - 1], day=day.day, ending=ending))
    return dates[0], dates[1]

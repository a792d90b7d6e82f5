"""Forms of clock times in English texts: 3:45, 2.30 pm, half past two, 1h30, and 5 p.m. as 17."""

import re
from fractions import Fraction

from .english_numbers import IGNORE_CASE, after_words, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before


_TIME_WORDS = re.compile(
    r"\b(?:start|beg[aiu]n|end|finish|leave|left|arrive|depart|until|till|open|close|o'clock|a\.?m|p\.?m|noon)",
    re.IGNORECASE,
)
_MORNING = re.compile(r"(?:\b|\d)a\.?m\b|\b12:|\bin the morning\b", re.IGNORECASE)
# From 10 pm to 6 am: the second time is on the next day.
_TO_MORNING = re.compile(r"\s?(?:to|till|until|-|–)\s?\d{1,2}(?::\d\d)?\s?a\.?m\b", re.IGNORECASE)
_FROM_EVENING = re.compile(r"\d\s?p\.?m\.?\s?(?:to|till|until|-|–)\s?\Z", re.IGNORECASE)


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """3:45, 5:15 p.m.: in minutes if minutes are asked for, otherwise in hours."""
    hours = int(match["hours"])
    minutes = int(match["minutes"])
    around = text_around(match, text)
    half_day = (match["half_day"] or "").lower().replace(".", "")
    if hours > 24 or minutes > 59 or "ratio" in around.lower():
        return None
    if not half_day and not _TIME_WORDS.search(around):
        return None
    # 12 hours are added only if the text also has times before noon: "from 3:45 to 5:15 p.m."
    if half_day == "pm" and _MORNING.search(around) and hours < 12:
        hours += 12
    elif half_day == "am" and _from_evening(match, text):
        hours = hours % 12 + 24
    return _time_match(match, 60 * hours + minutes, text)


def _to_morning(match: re.Match[str], text: str) -> bool:
    return _TO_MORNING.match(text, match.end()) is not None


def _from_evening(match: re.Match[str], text: str) -> bool:
    return _FROM_EVENING.search(text_before(match, text)) is not None


def _time_match(match: re.Match[str], minutes: int, text: str) -> FormMatch:
    if asks_for("how many (?:more )?minutes", text):
        return number_match(match, minutes)
    return number_match(match, Fraction(minutes, 60))


def _half_past(match: re.Match[str], text: str) -> FormMatch | None:
    """Half past two, a quarter past 5."""
    hour = number_of(match["hour"])
    if not 1 <= hour <= 12:
        return None
    minutes = 30 if match["part"].lower() == "half" else 15
    return _time_match(match, 60 * int(hour) + minutes, text)


def _quarter_to(match: re.Match[str], text: str) -> FormMatch | None:
    """At a quarter to 5."""
    hour = number_of(match["hour"])
    if not 1 <= hour <= 12:
        return None
    return _time_match(match, 60 * int(hour) - 15, text)


def _minutes_and_seconds(match: re.Match[str], text: str) -> FormMatch | None:
    """Ran a mile in 7:30, where seconds are asked for."""
    if not asks_for("how many (?:more )?seconds", text) or _TIME_WORDS.search(text_around(match, text)):
        return None
    seconds = 60 * int(match["minutes"]) + int(match["seconds"])
    return number_match(match, seconds, unit=" seconds")


def _hours_and_minutes(match: re.Match[str], text: str) -> FormMatch:
    """1h30."""
    minutes = 60 * int(match["hours"]) + int(match["minutes"])
    if asks_for(r"how many(?: \w+)? minutes", text):
        return number_match(match, minutes, unit=" minutes")
    return number_match(match, Fraction(minutes, 60), unit=" hours")


def _full_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """From 9 a.m. to 5 p.m., from 10 pm to 6 am: the later time is the larger number."""
    hours = int(match["hours"])
    if not 1 <= hours <= 12:
        return None
    half_day = match["half_day"].lower().replace(".", "")
    later = hours
    if half_day == "pm" and hours < 12 and (_MORNING.search(text_before(match, text)) or _to_morning(match, text)):
        later += 12
    elif half_day == "am" and _from_evening(match, text):
        later = hours % 12 + 24
    if later == hours:
        return None
    return number_match(match, later, group="hours")


_HOUR = r"(?P<hour>\d{1,2}(?![\d:.]\d)|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b"

ENGLISH_TIMES = (
    NumberForm(
        "minutes and seconds",
        re.compile(r"(?<![\d:.$])(?P<minutes>\d{1,2}):(?P<seconds>[0-5]\d)(?![\d:.]\d)(?!\s?[ap]\.?m\b)"),
        _minutes_and_seconds,
        ":",
        at_digits=True,
    ),
    NumberForm(
        "clock time",
        re.compile(
            r"(?<![\d:.$])(?P<hours>\d{1,2}):(?P<minutes>\d\d)(?![\d:.]\d)(?:\s?(?P<half_day>[ap]\.m\.|[ap]m\b))?",
            IGNORE_CASE,
        ),
        _clock_time,
        ":",
        at_digits=True,
    ),
    NumberForm(
        "clock time with a point",
        re.compile(
            r"(?<![\d:.$])(?P<hours>\d{1,2})\.(?P<minutes>[0-5]\d)\s?(?P<half_day>[ap]\.m\.|[ap]m\b)", IGNORE_CASE
        ),
        _clock_time,
        ".",
        at_digits=True,
    ),
    NumberForm(
        "full hour",
        re.compile(r"(?<![\d:.,$])(?P<hours>\d{1,2})\s?(?P<half_day>[ap]\.m\.|[ap]m\b)", IGNORE_CASE),
        _full_hour,
        at_digits=True,
    ),
    NumberForm(
        "half past",
        re.compile(rf"\b(?P<part>half|(?:an?\s)?quarter)[\s-]past\s{_HOUR}", IGNORE_CASE),
        _half_past,
        "past",
    ),
    NumberForm(
        "quarter to",
        # "She gave half to 5 friends and a quarter to 3 kids" has no times.
        re.compile(
            rf"{after_words('at is was until till from by about')}"
            rf"(?:an?\s)?quarter\s(?:to|till|before)\s{_HOUR}(?!\s(?!this|in|on|at|and|until|till|today|tomorrow)[a-z])",
            IGNORE_CASE,
        ),
        _quarter_to,
        "quarter",
    ),
    NumberForm(
        "hours and minutes",
        re.compile(r"(?<![\d.,])(?P<hours>\d{1,2})h(?P<minutes>[0-5]\d)(?:\s?m(?:ins?|inutes?)?)?\b"),
        _hours_and_minutes,
        "h",
        at_digits=True,
    ),
)

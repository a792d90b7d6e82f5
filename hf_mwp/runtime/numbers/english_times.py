"""Forms of clock times in English texts: 3:45, 2.30 pm, half past two, ten to six, noon, 1h30, and 5 p.m. as 17."""

import re
from fractions import Fraction

from .english_clock import (
    FEW_MINUTES,
    HOURS,
    TO_THE_END,
    asks_for_a_duration,
    asks_minutes,
    end_of_interval,
    has_clock_words,
    has_morning,
    is_afternoon,
    part_of_an_hour,
    start_of_interval,
    start_of_working_hours,
    time_match,
)
from .english_numbers import IGNORE_CASE, after_words, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before, text_beside


_TIME_WORDS = re.compile(
    r"\b(?:start|beg[aiu]n|end|finish|leave|left|arrive|depart|until|till|open|close|o'clock|a\.?m|p\.?m|noon)"
    r"|\d:\d\d\s?(?:to|til|and|[-–])\s?\d{1,2}:\d\d|\d:\d\d\s(?:to|til)\s\d{1,2}(?!\d|:|\.\d)"
    r"|\b(?:at|by|before|after|since)\s\d{1,2}:\d\d|\d:\d\d now\b",
    re.IGNORECASE,
)
_NOON = re.compile(r"\bnoon\b", re.IGNORECASE)
_OTHER_TIME = re.compile(r"\d:\d\d|\d\s?[ap]\.?m\b|\b(?:half|quarter)\s(?:past|to)\b|\bo['’]?clock\b", re.IGNORECASE)
# From 10 pm to 6 am: the second time is on the next day.
_TO_MORNING = re.compile(rf"{TO_THE_END}\d{{1,2}}(?::\d\d)?\s?a\.?m\b", re.IGNORECASE)
_FROM_EVENING = re.compile(rf"\d\s?p\.?m\.?{TO_THE_END}\Z", re.IGNORECASE)


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """3:45, 5:15 p.m.: in minutes if minutes are asked for, otherwise in hours."""
    hours = int(match["hours"])
    minutes = int(match["minutes"])
    around = text_around(match, text)
    half_day = (match["half_day"] or "").lower().replace(".", "")
    if hours > 24 or minutes > 59 or "ratio" in around.lower():
        return None
    if not half_day and not _TIME_WORDS.search(around) and not _is_working_time(match, text):
        return None
    start = None
    if not half_day:
        start = _later_start(match, text, 60 * hours + minutes)
    if start is not None:
        return time_match(match, end_of_interval(start, 60 * hours + minutes), text)
    if half_day == "am" and _from_evening(match, text):
        hours = hours % 12 + 24
    elif half_day != "am" and hours < 12 and is_afternoon(match, text):
        hours += 12
    return time_match(match, 60 * hours + minutes, text)


def _is_working_time(match: re.Match[str], text: str) -> bool:
    """Return whether the sentence of a time has words such as "works", in a text that asks for hours or minutes."""
    return has_clock_words(match, text) and asks_for_a_duration(match, text)


def _later_start(match: re.Match[str], text: str, minutes: int) -> int | None:
    """Return the start of the interval that a time ends if the start is later: 11:30 in "from 11:30 to 1:15"."""
    start = start_of_interval(match, text)
    if start is None:
        start = start_of_working_hours(match, text)
    if start is None or start <= minutes:
        return None
    return start


def _to_morning(match: re.Match[str], text: str) -> bool:
    return _TO_MORNING.match(text, match.end()) is not None


def _from_evening(match: re.Match[str], text: str) -> bool:
    return _FROM_EVENING.search(text_before(match, text)) is not None


def _has_other_time(match: re.Match[str], text: str) -> bool:
    rest = text_beside(match, text)
    return _OTHER_TIME.search(rest) is not None


def _minutes_past(match: re.Match[str], text: str) -> FormMatch | None:
    """Half past two, a quarter past 5, ten past six."""
    return _words_match(match, text, part_of_an_hour(match["part"]))


def _minutes_to(match: re.Match[str], text: str) -> FormMatch | None:
    """At a quarter to 5, at ten to six."""
    return _words_match(match, text, -part_of_an_hour(match["part"] or match["few"]))


def _words_match(match: re.Match[str], text: str, minutes: int) -> FormMatch | None:
    hour = number_of(match["hour"])
    if not 1 <= hour <= 12:
        return None
    start = _later_start(match, text, 60 * int(hour) + minutes)
    if start is not None:
        return time_match(match, end_of_interval(start, 60 * int(hour) + minutes), text)
    if hour < 12 and is_afternoon(match, text):
        hour += 12
    return time_match(match, 60 * int(hour) + minutes, text)


def _full_hour_in_words(match: re.Match[str], text: str) -> FormMatch | None:
    """4 o'clock: 240, where minutes are asked for and the text has other times."""
    if not asks_minutes(text) or not _has_other_time(match, text):
        return None
    return _words_match(match, text, 0)


def _hour_at_the_end(match: re.Match[str], text: str) -> FormMatch | None:
    """Worked 8:30 to 5: the second time is 17 o'clock, since it is before the first."""
    first_hour = int(match["first_hour"])
    hour = int(match["hours"])
    if first_hour > 12 or not 1 <= hour <= 12 or "ratio" in text_around(match, text).lower():
        return None
    if match["dash"] and not asks_for_a_duration(match, text):
        return None
    if hour <= first_hour:
        hour += 12
    if asks_minutes(text):
        hour *= 60
    return number_match(match, hour, group="hours")


def _one_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """It opens at 9 am and closes at 5 pm, but shuts for one hour."""
    if not _has_other_time(match, text):
        return None
    if asks_minutes(text):
        return number_match(match, 60, unit=" minutes")
    return number_match(match, 1, unit=" hour")


def _noon(match: re.Match[str], text: str) -> FormMatch | None:
    """From 6:15 until noon."""
    if not _has_other_time(match, text):
        return None
    return time_match(match, 12 * 60, text)


def _minutes_and_seconds(match: re.Match[str], text: str) -> FormMatch | None:
    """Ran a mile in 7:30, where seconds are asked for."""
    if not asks_for("how many (?:more )?seconds", text) or _TIME_WORDS.search(text_around(match, text)):
        return None
    seconds = 60 * int(match["minutes"]) + int(match["seconds"])
    return number_match(match, seconds, unit=" seconds")


def _hours_and_minutes(match: re.Match[str], text: str) -> FormMatch:
    """1h30, 2 hrs 15."""
    minutes = 60 * int(match["hours"]) + int(match["minutes"])
    if asks_for(r"how many(?: \w+)? min(?:ute)?s", text):
        return number_match(match, minutes, unit=" minutes")
    return number_match(match, Fraction(minutes, 60), unit=" hours")


def _full_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """From 9 a.m. to 5 p.m., from 10 pm to 6 am: the later time is the larger number."""
    hours = int(match["hours"])
    if not 1 <= hours <= 12:
        return None
    half_day = match["half_day"].lower().replace(".", "")
    later = hours
    if half_day == "pm" and hours < 12 and (has_morning(text_before(match, text)) or _to_morning(match, text)):
        later += 12
    elif half_day == "am" and _from_evening(match, text):
        later = hours % 12 + 24
    if asks_minutes(text) and (_has_other_time(match, text) or _NOON.search(text_around(match, text))):
        return number_match(match, 60 * later, group="hours")
    if later == hours:
        return None
    return number_match(match, later, group="hours")


_HOUR = rf"(?P<hour>{HOURS})\b"

_BEFORE_A_TIME = after_words("at is its it's until till by now")
_BEHIND_A_TIME = (
    "(?:this|in|on|at|and|until|till|today|tomorrow|now|the same|that|how|when|what|for|if|then|but|so)\\b"
)

ENGLISH_TIMES = (
    NumberForm(
        "minutes and seconds",
        re.compile(r"(?<![\d:.$])(?P<minutes>\d{1,2}):(?P<seconds>[0-5]\d)(?![\d:.]\d)(?!\s?[ap]\.?m\b)"),
        _minutes_and_seconds,
        ":",
        at_digits=True,
    ),
    NumberForm(
        "hour at the end of an interval",
        re.compile(
            r"(?<![\d:.$])(?P<first_hour>\d{1,2}):[0-5]\d(?:\s(?:to|til|till|until)\s|(?P<dash>\s?[-–]\s?))(?P<hours>\d{1,2})"
            r"(?=[,.;?!](?!\d)|\s(?:with|and|on|each|every|but|how)\b|\Z)",
            IGNORE_CASE,
        ),
        _hour_at_the_end,
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
        "minutes past an hour",
        re.compile(rf"\b(?P<part>half|(?:a\s)?quarter|{FEW_MINUTES})(?:\sminutes)?[\s-]past\s{_HOUR}", IGNORE_CASE),
        _minutes_past,
        "past",
    ),
    NumberForm(
        "minutes to an hour",
        # "She gave half to 5 friends and a quarter to 3 kids" has no times.
        re.compile(
            rf"(?:{after_words('at is was until till from by about')}(?P<part>(?:a\s)?quarter)\s(?:to|till|before)"
            rf"|{_BEFORE_A_TIME}(?P<few>{FEW_MINUTES})(?:\sminutes)?\sto)"
            rf"\s{_HOUR}(?!\s(?!{_BEHIND_A_TIME})[a-z])",
            IGNORE_CASE,
        ),
        _minutes_to,
        "to till before",
    ),
    NumberForm(
        "full hour in words",
        re.compile(rf"\b(?P<hour>{HOURS})(?=\so['’]?clock\b)", IGNORE_CASE),
        _full_hour_in_words,
        "o'clock o’clock oclock",
    ),
    NumberForm(
        "one hour",
        re.compile(r"\b(?:(?<=for )|(?<=has )|(?<=have )|(?<=with ))(?:one|an)\s?hour\b", IGNORE_CASE),
        _one_hour,
        "hour",
    ),
    NumberForm("noon", _NOON, _noon, "noon"),
    NumberForm(
        "hours and a number of minutes",
        re.compile(
            r"(?<![\d.,/:$])(?P<hours>\d{1,2})\s?(?:h|hrs?|hours?)\s(?P<minutes>[0-5]\d)(?=[,.;?!](?!\d)|\s(?:and|then)\b|\Z)",
            IGNORE_CASE,
        ),
        _hours_and_minutes,
        "h",
        at_digits=True,
    ),
    NumberForm(
        "hours and minutes",
        re.compile(r"(?<![\d.,])(?P<hours>\d{1,2})h(?:rs?)?(?P<minutes>[0-5]\d)(?:\s?m(?:ins?|inutes?)?)?\b"),
        _hours_and_minutes,
        "h",
        at_digits=True,
    ),
)

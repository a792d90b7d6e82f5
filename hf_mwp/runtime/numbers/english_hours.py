"""Forms of clock times without a.m. or p.m. in English texts: from 9 to 5, 0900, half ten, 7:30 hours."""

import re
from fractions import Fraction

from .english_clock import (
    BEHIND_AN_HOUR,
    DURATION_SIGNS,
    FEW_MINUTES,
    HOURS,
    NO_MINUTES,
    TO_THE_END,
    asks_for_a_duration,
    asks_minutes,
    end_of_interval,
    has_clock_words,
    is_afternoon,
    start_of_interval,
    start_of_working_hours,
    time_match,
)
from .english_numbers import IGNORE_CASE, after_words, number_of
from .english_numerals import BELOW_100
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before, text_beside


_LATER_TIME = (
    rf"\d{{1,2}}:\d\d|{FEW_MINUTES}(?:\sminutes)?\s(?:to|past)\s|half\s|a?\s?quarter\s|{HOURS}\b{BEHIND_AN_HOUR}"
)
_VERBS = (
    r"(?:leaves?|left|depart(?:s|ed)?|arrives?|arrived|opens?|opened|closes?|closed|starts?|started|begins?|began|ends?|ended"
    r"|finish(?:es|ed)?|clock(?:s|ed)? (?:in|out)|works?|worked|shift)"
)
_VERB_BEFORE_AN_HOUR = re.compile(rf"\b{_VERBS}\b[^.?!\d$£€]{{0,25}}\b(?:at|from)\s\Z", re.IGNORECASE)
_TIME_WITH_POINT = re.compile(
    rf"\b{_VERBS}\b[^.?!\d$£€]{{0,25}}\b(?:at|from)\s\d{{1,2}}\.[0-5]\d{BEHIND_AN_HOUR}", re.IGNORECASE
)
_OTHER_TIME_WITH_POINT = re.compile(
    r"\b(?:at|from|to|till?|until)\s\d{1,2}[.:][0-5]\d(?!\d)|[-–]\d{1,2}\.[0-5]\d(?!\d)"
)
_FOUR_DIGITS = r"(?:[01]\d|2[0-4])[0-5]\d"
_VERB_BEFORE_FOUR_DIGITS = re.compile(
    rf"\b{_VERBS}\b[^.?!\d$£€]{{0,25}}\b(?:at|from)\s{_FOUR_DIGITS}\b", re.IGNORECASE
)
_OTHER_FOUR_DIGITS = re.compile(
    rf"\b(?:at|from|to|till?|until)\s{_FOUR_DIGITS}\b|[-–]\s?{_FOUR_DIGITS}\b", re.IGNORECASE
)
_CLOCK_TIME = re.compile(
    r"\d:\d\d|\d\s?[ap]\.?m\b|\b(?:half|quarter)\s(?:past|to)\b|\bo['’]?clock\b"
    rf"|\b(?:at|from|until|till?|to|by)\s(?:half\s)?(?:{HOURS})\b{BEHIND_AN_HOUR}",
    re.IGNORECASE,
)
_AFTER_A_VERB_OF_TIME = after_words("at from until till til to by")
_BEFORE_A_CLOCK_TIME = re.compile(r"\b(?:at|from|to|until|till?|by|before|after|since|and)\s\Z", re.IGNORECASE)
_IN_MINUTES = r"how many(?: \w+)? min(?:ute)?s|\bin minutes"


def _start(match: re.Match[str], text: str) -> FormMatch | None:
    """Starts at 9 and ends at 10:30: 540, where minutes are asked for."""
    if not asks_minutes(text) or not asks_for_a_duration(match, text) or not _is_clock_time(match, text):
        return None
    hour = int(number_of(match["hour"]))
    if not 1 <= hour <= 24:
        return None
    return number_match(match, 60 * hour)


def _is_clock_time(match: re.Match[str], text: str) -> bool:
    """Return whether a full hour is next to a time with minutes, or to words such as "works" or "starts at"."""
    if ":" in text[match.end() : match.end() + 80] or has_clock_words(match, text):
        return True
    return _VERB_BEFORE_AN_HOUR.search(text_before(match, text)) is not None


def _end(match: re.Match[str], text: str) -> FormMatch | None:
    """From 9 to 5, opens at 9 and closes at 6: the later time is the larger number."""
    hour = int(number_of(match["hour"]))
    if not 1 <= hour <= 24 or not asks_for_a_duration(match, text):
        return None
    start = start_of_working_hours(match, text)
    if start is None and text.endswith("at ", 0, match.start()):
        start = start_of_interval(match, text)
    if start is None:
        return None
    end = end_of_interval(start, 60 * hour)
    if end == 60 * hour and hour < 12 and is_afternoon(match, text):
        end += 12 * 60
    if end == 60 * hour and not asks_minutes(text):
        return None
    return time_match(match, end, text)


def _half_of_the_next_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """From half ten until three: half past ten, in a text with another time."""
    if not asks_for_a_duration(match, text) or not _CLOCK_TIME.search(text_beside(match, text)):
        return None
    hour = int(number_of(match["hour"]))
    if not 1 <= hour <= 12:
        return None
    return _later_than_its_start(match, 60 * hour + 30, text)


def _with_a_point(match: re.Match[str], text: str) -> FormMatch | None:
    """Leaves at 7.40 and arrives at 8.25."""
    return _beside_another(match, text, _TIME_WITH_POINT, _OTHER_TIME_WITH_POINT)


def _four_digits(match: re.Match[str], text: str) -> FormMatch | None:
    """Opens at 0900 and closes at 1730."""
    return _beside_another(match, text, _VERB_BEFORE_FOUR_DIGITS, _OTHER_FOUR_DIGITS)


def _beside_another(
    match: re.Match[str], text: str, with_verb: re.Pattern[str], other: re.Pattern[str]
) -> FormMatch | None:
    """Return a time in a text that asks for a duration, and has one of its times behind a verb and another beside
    the match."""
    if not asks_for_a_duration(match, text) or not with_verb.search(text_around(match, text)):
        return None
    if not other.search(text_beside(match, text)):
        return None
    return _later_than_its_start(match, 60 * int(match["hours"]) + int(match["minutes"]), text)


def _later_than_its_start(match: re.Match[str], minutes: int, text: str) -> FormMatch:
    """Return a time, of the next day or after noon if its interval begins later."""
    start = start_of_interval(match, text)
    if start is not None:
        minutes = end_of_interval(start, minutes)
    if minutes < 12 * 60 and is_afternoon(match, text):
        minutes += 12 * 60
    return time_match(match, minutes, text)


def _duration(match: re.Match[str], text: str) -> FormMatch:
    """Worked 7:30 hours, 1h30, 2 hrs 15, an hour and twenty."""
    minutes = 60 * int(number_of(match["hours"])) + int(number_of(match["minutes"]))
    if asks_for(_IN_MINUTES, text):
        return number_match(match, minutes, unit=" minutes")
    return number_match(match, Fraction(minutes, 60), unit=" hours")


def _duration_with_colon(match: re.Match[str], text: str) -> FormMatch | None:
    """Worked 7:30 hours, but not at 15:00 hours."""
    if _BEFORE_A_CLOCK_TIME.search(text_before(match, text)):
        return None
    return _duration(match, text)


def _half_hour(match: re.Match[str], text: str) -> FormMatch:
    """A half-hour break."""
    if asks_for(_IN_MINUTES, text):
        return number_match(match, 30, unit="-minute")
    return number_match(match, Fraction(1, 2), unit="-hour")


ENGLISH_HOURS = (
    NumberForm(
        "duration with a colon",
        re.compile(
            r"(?<![\d:.$])(?P<hours>\d{1,2}):(?P<minutes>[0-5]\d)\s?(?:hours?|hrs?)\b(?!\s\d)",
            IGNORE_CASE,
        ),
        _duration_with_colon,
        ":",
        at_digits=True,
    ),
    NumberForm(
        "hour and a number of minutes in words",
        re.compile(
            rf"\b(?P<hours>an|one|two|three|four|five|\d)\s(?:hours?|hrs?)\sand\s(?P<minutes>(?!one\b){BELOW_100}|[1-5]\d)"
            r"(?=[,;?!]|\.(?!\d)|\s(?:long|total)\b|\s*\Z)",
            IGNORE_CASE,
        ),
        _duration,
        "hour hr",
    ),
    NumberForm(
        "full hour at the start of an interval",
        re.compile(
            rf"(?:{after_words('at')}(?!(?:{FEW_MINUTES})\sto\s)|{after_words('from')})(?P<hour>{HOURS})\b{BEHIND_AN_HOUR}(?={TO_THE_END}(?:{_LATER_TIME}))",
            IGNORE_CASE,
        ),
        _start,
        "at from",
    ),
    NumberForm(
        "full hour at the end of an interval",
        re.compile(
            rf"(?:{after_words('at to till til until and')}|(?<=\d[-–])|(?<=\s[-–]\s))(?P<hour>{HOURS})\b{NO_MINUTES}"
            rf"{BEHIND_AN_HOUR}",
            IGNORE_CASE,
        ),
        _end,
        DURATION_SIGNS,
    ),
    NumberForm(
        "half of the next hour",
        re.compile(rf"{_AFTER_A_VERB_OF_TIME}half\s(?P<hour>{HOURS})\b{BEHIND_AN_HOUR}", IGNORE_CASE),
        _half_of_the_next_hour,
        "half",
    ),
    NumberForm(
        "clock time with a point and no half of the day",
        re.compile(
            rf"(?:{_AFTER_A_VERB_OF_TIME}|(?<=\d[-–]))(?P<hours>\d{{1,2}})\.(?P<minutes>[0-5]\d){BEHIND_AN_HOUR}",
            IGNORE_CASE,
        ),
        _with_a_point,
        DURATION_SIGNS,
        at_digits=True,
    ),
    NumberForm(
        "clock time of four digits",
        re.compile(
            rf"(?:{_AFTER_A_VERB_OF_TIME}|(?<=\d[-–]))(?P<hours>[01]\d|2[0-4])(?P<minutes>[0-5]\d)"
            rf"(?:\s?(?:hours|hrs|h)\b)?{BEHIND_AN_HOUR}",
            IGNORE_CASE,
        ),
        _four_digits,
        DURATION_SIGNS,
        at_digits=True,
    ),
    NumberForm(
        "half-hour break",
        re.compile(
            r"\bhalf[-\s]hour(?=\s(?:[a-z]{1,8}\s){0,1}(?:break|lunch|rest|recess|nap|meal|pause)s?\b)", IGNORE_CASE
        ),
        _half_hour,
        "half-hour half",
    ),
)
"""Forms that are read before those of other clock times."""

"""Forms of intervals between dates in English texts: from March 3rd to March 12th, with a number for each day."""

import re
from dataclasses import replace
from datetime import date

from .english_numbers import IGNORE_CASE
from .number_form import CONTEXT, FormMatch, NumberForm, asks_for, no_number, number_match, text_around


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_EACH_DAY = re.compile(r"(?:\b(?:per|an?|each|every) |/\s?)(?:day|night)\b|\b(?:daily|nightly)\b", IGNORE_CASE)
_BOTH_DAYS = re.compile(r"\b(?:inclusive|inclusively|(?:including|counting|count) both)\b", IGNORE_CASE)
_NIGHTS = re.compile(r"\bnights?\b", IGNORE_CASE)
_YEAR = re.compile(r"\b((?:19|20)\d\d)\b")
_COMMON_YEAR = 2025


def _date(prefix: str) -> str:
    """Return the pattern of a date, with names of groups that begin with a prefix."""
    return (
        rf"(?:(?P<{prefix}_month>{_MONTH})\s(?:the\s)?(?P<{prefix}_day>{_DAY})\b"
        rf"|(?P<{prefix}_day_before>{_DAY})\s(?:of\s)?(?P<{prefix}_month_behind>{_MONTH}))"
    )


def _read_date(match: re.Match[str], prefix: str, year: int) -> date | None:
    month = match[f"{prefix}_month"] or match[f"{prefix}_month_behind"]
    day = match[f"{prefix}_day"] or match[f"{prefix}_day_before"]
    try:
        return date(year, 1 + _MONTHS.index(month[:3].lower()), int(re.sub(r"\D", "", day)))
    except ValueError:
        return None


def _interval_of(first_match: re.Match[str], last_match: re.Match[str], text: str) -> int | None:
    """Return the number of days from a date to a later one, or `None` if they are no dates or not in this order."""
    year = _COMMON_YEAR
    year_of_text = _YEAR.search(text)
    if year_of_text is not None:
        year = int(year_of_text[1])
    first = _read_date(first_match, "first", year)
    last = _read_date(last_match, "last", year)
    if first is None or last is None or last <= first:
        return None
    return (last - first).days


def _days(match: re.Match[str], text: str) -> FormMatch | None:
    """From March 3rd to March 12th: 10 days with both days, or 9 nights, in a text with a number for each of them."""
    around = text_around(match, text)
    if not _has_number_of_days(around, text):
        return None
    num_nights = _interval_of(match, match, around)
    if num_nights is None:
        return None
    return _nights_or_days(match, num_nights, around)


def _has_number_of_days(around: str, text: str) -> bool:
    """Return whether a text has a number for each day or night, or asks for nights, and does not ask for a date."""
    if asks_for(r"\b(?:what|which) (?:day|date)\b|\bwhen\b", text):
        return False
    return _EACH_DAY.search(around) is not None or asks_for(r"\bhow many nights\b", text)


def _difference_match(match: re.Match[str], num_days: int, unit: str) -> FormMatch:
    """Return the number of days between two dates, of which one is not counted."""
    read = number_match(match, num_days, unit=f" {unit}")
    return replace(read, note=f"{match[0]} was read as {read.literal} {unit}")


def _nights_or_days(match: re.Match[str], num_nights: int, around: str) -> FormMatch:
    """Return the number of nights of an interval in a text about nights, or else that of its days, with both."""
    if _NIGHTS.search(around):
        return _difference_match(match, num_nights, "nights")
    read = number_match(match, num_nights + 1, unit=" days")
    return replace(read, note=f"{match[0]} was read as {read.literal} days, with the first and the last day")


def _days_in_a_month(match: re.Match[str], text: str) -> FormMatch | None:
    """Aug 4-9, in a text with a number for each night: 5 nights."""
    around = text_around(match, text)
    if not _has_number_of_days(around, text):
        return None
    num_nights = int(match["last_day"]) - int(match["first_day"])
    if num_nights < 1 or int(match["last_day"]) > 31:
        return None
    return _nights_or_days(match, num_nights, around)


def _stay(match: re.Match[str], text: str) -> FormMatch | None:
    """Checked in on June 28 and checked out on July 3, at $90 a night: 5 nights."""
    around = text_around(match, text)
    if not _has_number_of_days(around, text):
        return None
    num_nights = _interval_of(match, match, around)
    if num_nights is None:
        return None
    return _difference_match(match, num_nights, "nights" if _NIGHTS.search(around) else "days")


def _days_asked_for(match: re.Match[str], text: str) -> FormMatch | None:
    """How many days are there from March 12 to April 5: 24 days, or 25 with both days."""
    around = text_around(match, text)
    num_days = _interval_of(match, match, around)
    if num_days is None:
        return None
    if _BOTH_DAYS.search(around):
        num_days += 1
    read = number_match(match, num_days, unit=" days", group="interval")
    return replace(read, note=f"{match['interval']} was read as {read.literal} days")


def _asks_for_days(text: str) -> bool:
    return asks_for(r"\bhow many days\b", text)


def _today(match: re.Match[str], text: str) -> FormMatch | None:
    """Today is March 12: no number before a later date, which is read as the number of days until then."""
    later = _LATER_DATE.search(text, match.end(), match.end() + CONTEXT)
    if later is None or not _asks_for_days(text) or _interval_of(match, later, text) is None:
        return None
    return no_number(match, text)


def _later_date(match: re.Match[str], text: str) -> FormMatch | None:
    """My birthday is on April 5, in a text with "today is March 12": 24 days."""
    if not _asks_for_days(text):
        return None
    today = _TODAY.search(text, max(0, match.start() - CONTEXT), match.start())
    if today is None:
        return None
    num_days = _interval_of(today, match, text)
    if num_days is None:
        return None
    read = number_match(match, num_days, unit=" days", group="date")
    return replace(read, note=f"{today[0]} ... {match[0]} was read as {num_days} days")


_TODAY = re.compile(rf"\b(?:today(?:['’]?s| is)|it(?:['’]?s| is))\s(?:now\s)?(?:the\s)?{_date('first')}", IGNORE_CASE)
_LATER_DATE = re.compile(rf"(?<=\s)(?P<date>(?:the\s)?{_date('last')})", IGNORE_CASE)
_LAST_DAY_WORDS = (
    r"(?:check(?:s|ed|ing)?[\s-]out|leav(?:e|es|ing)|left|return(?:s|ed|ing)?|depart(?:s|ed|ing)?"
    r"|(?:c[ao]mes?|came|go|goes|went|flew|fly|brought(?:\sit|\sthem)?)(?:\sback|\shome))"
)
_INTERVAL = rf"(?:from\s|between\s)?{_date('first')}\s?(?:to|till|until|through|and|[-–])\s?{_date('last')}"

ENGLISH_DATES = (
    NumberForm(
        "days between dates",
        re.compile(rf"\bhow many days (?:are there |are |is it |there are )?(?P<interval>{_INTERVAL})", IGNORE_CASE),
        _days_asked_for,
        "days",
    ),
    NumberForm(
        "intervals of dates",
        re.compile(rf"\b{_INTERVAL}", IGNORE_CASE),
        _days,
        " ".join(_MONTHS),
    ),
    NumberForm(
        "days of a month",
        re.compile(
            rf"\b(?:from\s)?{_MONTH}\s(?P<first_day>\d{{1,2}})(?:st|nd|rd|th)?(?:\s?[-–]\s?|\s(?:to|till?|until|through)\s)"
            r"(?P<last_day>\d{1,2})(?:st|nd|rd|th)?\b(?![/.,:]\d)",
            IGNORE_CASE,
        ),
        _days_in_a_month,
        " ".join(_MONTHS),
    ),
    NumberForm(
        "stays",
        re.compile(
            rf"\b(?:on\s)?{_date('first')},?\s(?:(?:and|then|but|we|i|they|he|she|it|was|is|will|[A-Z][a-z]{{1,12}})\s){{0,4}}"
            rf"{_LAST_DAY_WORDS}\s(?:on\s)?{_date('last')}",
            IGNORE_CASE,
        ),
        _stay,
        " ".join(_MONTHS),
    ),
    NumberForm("later dates", _LATER_DATE, _later_date, "today it"),
    NumberForm("today's date", _TODAY, _today, "today it"),
)
"""Forms for solvers that were trained with converted units, before those of names."""

"""Forms of intervals between dates in English texts: from March 3rd to March 12th, with a number for each day."""

import re
from dataclasses import replace
from datetime import date

from .english_numbers import IGNORE_CASE
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = (
    r"(?:(?:january|february|march|april|may|june|july|august|september|october|november|december)\b"
    r"|(?:jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\b\.?)"
)
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_EACH_DAY = re.compile(r"\b(?:(?:per|an?|each|every) (?:day|night)|daily|nightly)\b", IGNORE_CASE)
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


def _days(match: re.Match[str], text: str) -> FormMatch | None:
    """From March 3rd to March 12th: 10 days with both days, or 9 nights, in a text with a number for each of them."""
    around = text_around(match, text)
    if not _EACH_DAY.search(around) or asks_for(r"\b(?:what|which) (?:day|date)\b|\bwhen\b", text):
        return None
    year = _YEAR.search(around)
    year = int(year[1]) if year is not None else _COMMON_YEAR
    first = _read_date(match, "first", year)
    last = _read_date(match, "last", year)
    if first is None or last is None or last <= first:
        return None
    num_nights = (last - first).days
    if _NIGHTS.search(around):
        read = number_match(match, num_nights, unit=" nights")
        return replace(read, note=f"{match[0]} was read as {read.literal} nights")
    read = number_match(match, num_nights + 1, unit=" days")
    return replace(read, note=f"{match[0]} was read as {read.literal} days, with the first and the last day")


ENGLISH_DATES = (
    NumberForm(
        "intervals of dates",
        re.compile(
            rf"\b(?:from\s|between\s)?{_date('first')}\s?(?:to|till|until|through|and|[-–])\s?{_date('last')}",
            IGNORE_CASE,
        ),
        _days,
        " ".join(_MONTHS),
    ),
)
"""Forms for solvers that were trained with converted units, before those of names."""

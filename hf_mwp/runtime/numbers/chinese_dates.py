"""Forms of intervals between dates in Chinese texts: 7月5日到7月16日每天 has 12 days."""

import re
from dataclasses import replace
from datetime import date

from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around


_EACH_DAY = re.compile("每天|每日|天天|平均每")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)\s?年")
_COMMON_YEAR = 2025
_LEAP_YEAR = 2024


def _year_of(text: str) -> int:
    """Return the year that a text names, or any year with as many days."""
    year = _YEAR.search(text)
    if year is not None:
        return int(year[1])
    return _LEAP_YEAR if "闰年" in text else _COMMON_YEAR


def _days(match: re.Match[str], text: str) -> FormMatch | None:
    """7月5日到7月16日: 12天 with both days, in a text with a number for each day."""
    around = text_around(match, text)
    if not _EACH_DAY.search(around) or asks_for("几月|几[日号]|哪天|哪一天", text):
        return None
    first_month = int(match["first_month"])
    last_month = int(match["last_month"] or first_month)
    year = _year_of(around)
    try:
        first = date(year, first_month, int(match["first_day"]))
        last = date(year, last_month, int(match["last_day"]))
    except ValueError:
        return None
    if last <= first:
        return None
    read = number_match(match, (last - first).days + 1, unit="天")
    return replace(read, note=f"{match[0]} was read as {read.literal}天, with the first and the last day")


CHINESE_DATES = (
    NumberForm(
        "intervals of dates",
        re.compile(
            r"从?(?<![\d.])(?P<first_month>\d{1,2})月(?P<first_day>\d{1,2})[日号](?:起|开始)?\s?(?:到|至|[~～—–-]{1,2})\s?"
            r"(?:(?P<last_month>\d{1,2})月)?(?P<last_day>\d{1,2})[日号](?:为?止|结束)?"
        ),
        _days,
        "月",
    ),
)
"""Forms for solvers that were trained with converted units."""

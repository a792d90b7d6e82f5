"""Forms of intervals between dates in Chinese texts: 7月5日到7月16日每天 and 今天8月20日，9月1日开学 have 12 days."""

import re
from dataclasses import replace
from datetime import date

from .number_form import CONTEXT, FormMatch, NumberForm, asks_for, no_number, number_match, text_around


_EACH_DAY = re.compile("每天|每日|天天|平均每")
_NIGHT = re.compile("每晚|[一1]晚|(?:多少|几)晚|住宿|入住")
_NOT_COUNTED = "[^，,。；;？?]{0,3}不(?:算|包括|包含|计)"
_WITHOUT_A_DAY = re.compile(
    f"(?:[头尾首末]|[那这当后一][一]?[天日]|[日号]){_NOT_COUNTED}|不(?:算|包括|包含|计)[头尾首末]"
)
_WITHOUT_BOTH_DAYS = re.compile(f"[头首]尾{_NOT_COUNTED}")
_YEAR = re.compile(r"(?<!\d)((?:19|20)\d\d)\s?年")
_COMMON_YEAR = 2025
_LEAP_YEAR = 2024
_FIRST_DATE = r"从?(?<![\d.])(?P<first_month>\d{1,2})月(?P<first_day>\d{1,2})[日号]"
_LAST_DATE = r"(?:(?P<last_month>\d{1,2})月)?(?P<last_day>\d{1,2})[日号]"
_BEGINNING = re.compile(rf"{_FIRST_DATE}(?=起|开始|[^，,。；;？?\d]{{0,6}}开始)")
_END = re.compile(rf"(?:到|[，,](?=[^，,]{{1,9}}(?:最后一天|结束))){_LAST_DATE}(?:为?止)?")


def _year_of(text: str) -> int:
    """Return the year that a text names, or any year with as many days."""
    year = _YEAR.search(text)
    if year is not None:
        return int(year[1])
    return _LEAP_YEAR if "闰年" in text else _COMMON_YEAR


def _days_between(first: re.Match[str], last: re.Match[str], text: str) -> int | None:
    """Return the number of days from a date to a later one, or `None` if there is none."""
    year = _year_of(text_around(first, text))
    month = int(first["first_month"])
    try:
        first_date = date(year, month, int(first["first_day"]))
        last_date = date(year, int(last["last_month"] or month), int(last["last_day"]))
    except ValueError:
        return None
    num_days = (last_date - first_date).days
    return num_days if num_days > 0 else None


def _count_days(first: re.Match[str], last: re.Match[str], text: str) -> int | None:
    """Return the number of days from a date to another in a text that has a number for each day or asks for the days:
    with both days, unless the text says that one or both are not counted. Nights in a hotel are one less."""
    around = text_around(first, text)
    if not _EACH_DAY.search(around) and not _NIGHT.search(around) and not asks_for("(?:多少|几)天", text):
        return None
    if asks_for("几月|几[日号]|哪天|哪一天", text):
        return None
    num_days = _days_between(first, last, text)
    if num_days is None or _NIGHT.search(around):
        return num_days
    if _WITHOUT_BOTH_DAYS.search(around):
        return num_days - 1
    return num_days if _WITHOUT_A_DAY.search(around) else num_days + 1


def _interval(match: re.Match[str], text: str) -> FormMatch | None:
    """7月5日到7月16日: 12天."""
    num_days = _count_days(match, match, text)
    if num_days is None:
        return None
    read = number_match(match, num_days, unit="天")
    return replace(read, note=f"{match[0]} was read as {num_days}天")


def _beginning(match: re.Match[str], text: str) -> FormMatch | None:
    """从3月25日 is no number before 吃到4月3日, which is read as the number of days."""
    end = _END.search(text, match.end(), match.end() + CONTEXT)
    if end is None or _count_days(match, end, text) is None:
        return None
    return no_number(match, text)


def _end(match: re.Match[str], text: str) -> FormMatch | None:
    """从3月25日开始吃药，每天吃3片，吃到4月3日: 10天 with both days."""
    beginnings = list(_BEGINNING.finditer(text, max(0, match.start() - CONTEXT), match.start()))
    if not beginnings:
        return None
    num_days = _count_days(beginnings[-1], match, text)
    if num_days is None:
        return None
    note = f"{beginnings[-1][0]} ... {match[0]} was read as {num_days}天"
    return replace(number_match(match, num_days, unit="天"), note=note)


def _days_until(match: re.Match[str], text: str) -> FormMatch | None:
    """今天8月20日，9月1日开学，还有几天: 12天. 7月3日入住，7月6日退房: 3天."""
    around = text_around(match, text)
    if not asks_for(_DAYS_UNTIL, text) and not _NIGHT.search(around):
        return None
    num_days = _days_between(match, match, text)
    if num_days is None or len(_DATE.findall(around)) != 2:
        return None
    read = number_match(match, num_days, unit="天")
    return replace(read, note=f"{match[0]} was read as {num_days}天")


_DATE = re.compile(r"\d{1,2}月\d{1,2}[日号]")
_DAYS_UNTIL = "(?:还有|还剩|还要[过等]?|再过|相隔|相差|隔了?)(?:多少|几)天"


CHINESE_DATES = (
    NumberForm(
        "intervals of dates",
        re.compile(
            rf"{_FIRST_DATE}(?:起|开始|[放住休用读写学干看吃])?\s?(?:到|至|[~～—–-]{{1,2}})\s?{_LAST_DATE}(?:为?止|结束)?"
        ),
        _interval,
        "月",
    ),
    NumberForm(
        "days until a date",
        re.compile(
            rf"{_FIRST_DATE}(?:入住|住进)?[，,\s]?(?:离|距离?)?[^，,。；;？?\d]{{0,8}}?"
            r"(?P<last_month>\d{1,2})月(?P<last_day>\d{1,2})[日号]"
        ),
        _days_until,
        "月",
    ),
    NumberForm("included days", re.compile(r"[（(](?:包括|包含|含)\d{1,2}[日号][)）]"), no_number, "包 含"),
    NumberForm("ends of intervals of dates", _END, _end, "月"),
    NumberForm("beginnings of intervals of dates", _BEGINNING, _beginning, "月"),
)
"""Forms for solvers that were trained with converted units."""

"""Forms of intervals between clock times in Chinese texts: 早上8点到下午5点营业 has 9 hours."""

import re
from fractions import Fraction

from .chinese_numbers import MINUTES_OF_PARTS, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_beside


_AFTERNOON = ("下午", "晚上", "傍晚", "夜里")
_TIME_OF_DAY = "上午|下午|早上|早晨|清晨|晚上|中午|凌晨|傍晚|夜里"
_HOURS = r"\d{1,2}|[一二两三四五六七八九十]{1,3}"
_MINUTES = r"\d{1,2}|[零一二三四五六七八九十]{1,3}"
_OTHER_NUMBER = re.compile(r"[\d一二两三四五六七八九十]")


def _time(prefix: str) -> str:
    """Return the pattern of a time of the day, with names of groups that begin with a prefix."""
    return (
        rf"(?P<{prefix}_day>{_TIME_OF_DAY})?\s?(?P<{prefix}_hours>{_HOURS})"
        rf"(?:[:：](?P<{prefix}_digits>\d\d)|(?:时|点钟?)(?:(?P<{prefix}_part>半|[一三]刻)|(?P<{prefix}_minutes>{_MINUTES})分(?!之))?)"
    )


def _minutes(match: re.Match[str], prefix: str) -> Fraction | None:
    """Return the minutes from midnight to one of the times of an interval, or `None`."""
    hours = number_of(match[f"{prefix}_hours"])
    minutes = number_of(match[f"{prefix}_digits"] or match[f"{prefix}_minutes"] or "零")
    if match[f"{prefix}_part"]:
        minutes = MINUTES_OF_PARTS[match[f"{prefix}_part"]]
    if hours is None or minutes is None or hours > 24 or minutes >= 60:
        return None
    if match[f"{prefix}_day"] in _AFTERNOON and hours < 12:
        hours += 12
    return 60 * hours + minutes


def _interval(match: re.Match[str], text: str) -> FormMatch | None:
    """早上8点到下午5点, if the text also has other numbers."""
    rest = text_beside(match, text)
    first = _minutes(match, "first")
    last = _minutes(match, "last")
    if first is None or last is None or not _OTHER_NUMBER.search(rest) or asks_for("几[时点]|什么时", text):
        return None
    if last <= first:
        # 下午2点到5点 and 8点到5点 end on the same day.
        last += 24 * 60 if match["next_day"] or match["last_day"] else 12 * 60
    duration = last - first
    if not 0 < duration < 24 * 60:
        return None
    if asks_for("(?:多少|几)分", text) or "每分" in text:
        return number_match(match, duration, unit="分钟")
    return number_match(match, duration / 60, unit="小时")


CHINESE_INTERVALS = (
    NumberForm(
        "intervals of time",
        re.compile(
            rf"从?(?<![\d:：.第]){_time('first')}\s?(?:到|至|[~～—–-]{{1,2}})\s?(?P<next_day>第二天|次日)?{_time('last')}(?![\d:：])"
        ),
        _interval,
        "时 点 : ：",
    ),
)
"""Forms for solvers that were trained with converted units, before those of clock times."""

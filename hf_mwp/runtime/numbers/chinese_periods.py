"""Periods of rates in Chinese texts: a week has 7 days if there is a rate for each day (每天看5页，一周看多少页)."""

import re
from dataclasses import dataclass, replace
from fractions import Fraction

from .chinese_numbers import CHARACTERS, DIGITS, NUMBER, NUMERAL, START, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around


@dataclass(frozen=True)
class _Unit:
    """A unit of time in which a rate is told."""

    name: str  # for the masked text
    names: str  # pattern
    rate: re.Pattern[str]


@dataclass(frozen=True)
class _Period:
    """A unit of time that has several smaller ones."""

    names: str  # pattern
    unit: _Unit
    num_units: int


_SECOND = _Unit("秒", "秒钟?", re.compile("每秒"))
_MINUTE = _Unit("分钟", "分钟?", re.compile("每分钟?|分速"))
# 每小时, 60km/h, 一小时40元, 40元一小时.
_EACH_HOUR = re.compile(
    rf"每个?(?:小时|钟头)|每时|时速|[/／]\s?(?:小时|时|[hH](?![A-Za-z]))|(?<![半{CHARACTERS}\d.])[一1]个?(?:小时|钟头)\s?(?=[¥￥\d])"
    r"|[元块]钱?\s?[一1]个?(?:小时|钟头)"
)
_HOUR = _Unit("小时", "个?小时|个?钟头|时", _EACH_HOUR)
_DAY = _Unit("天", "[天日]", re.compile("每[天日]|天天|日均"))
_MONTH = _Unit("个月", "个月", re.compile("每个?月|月租|月薪"))
_QUARTER = _Unit("个季度", "个?季度", re.compile("每个?季度"))
# The first unit with a rate in the text counts: 一年 has months in a text with 每月.
_PERIODS = (
    _Period("分钟", _SECOND, 60),
    _Period("小时|钟头", _MINUTE, 60),
    _Period("昼夜|天", _HOUR, 24),
    _Period("星期|礼拜|周", _DAY, 7),
    _Period("季度", _MONTH, 3),
    _Period("年", _MONTH, 12),
    _Period("年", _QUARTER, 4),
    _Period("年", _DAY, 365),
)
_NAME = "(?P<name>星期|礼拜|周|年|季度|昼夜|天|小时|钟头|分钟)"
_NOT_AFTER = "(?![末岁级度利率])"
_NO_WEEKDAY = "(?![一二三四五六日天])"
_MAX_NUMBER = 20  # 2008年 is a date
# Calendars, working days, interest.
_OTHER_PERIODS = re.compile(
    rf"工作日|上班|休息|双休|闰年|利率|(?<![{CHARACTERS}半\d个])(?:周|星期)[一二三四五六日天末]"
)
_SAME_RATE = re.compile("照这|照此|同样的")
_FULL_CIRCLE = re.compile("[绕沿围转圈]|操场|周长|跑道|池塘|花坛")
_DATE = re.compile(r"\d月")
_WEEKDAYS = "一二三四五六日"


def _period_of(name: str, text: str) -> _Period | None:
    """Return the period with a name whose unit has a rate in the text, or `None`. The text must not count this unit,
    except in a rate itself (5天看80页，照这样)."""
    if _OTHER_PERIODS.search(text) or (name == "周" and _FULL_CIRCLE.search(text)):
        return None
    has_same_rate = _SAME_RATE.search(text) is not None
    for period in _PERIODS:
        if not re.fullmatch(period.names, name):
            continue
        is_counted = _is_counted(period.unit.names, text)
        if (is_counted and has_same_rate) or (not is_counted and period.unit.rate.search(text)):
            return period
    return None


def _is_counted(names: str, text: str) -> bool:
    """Return whether the text has or asks for a number of a unit."""
    return re.search(rf"(?:{DIGITS}|{NUMERAL}|半|(?<!这)几|多少)个?(?:{names})", text) is not None


def _in_units_of_the_rate(match: re.Match[str], text: str) -> FormMatch | None:
    """一周 in a text with 每天: 7 days, unless the text also counts days or has a rate for each week."""
    around = text_around(match, text)
    period = _period_of(match["name"], around)
    if period is None or re.search(rf"每个?{match['name']}", around):
        return None
    number = Fraction(1, 2) if match["number"] == "半" else number_of(match["number"])
    if number is not None and match["half"]:
        number += Fraction(1, 2)
    if number is None or number > _MAX_NUMBER or (period.num_units * number).denominator != 1:
        return None
    return _units_match(match, period.num_units * number, period.unit)


def _whole_year(match: re.Match[str], text: str) -> FormMatch | None:
    """全年 in a text with 每月: 12 months."""
    around = text_around(match, text)
    if not _MONTH.rate.search(around) or _is_counted("个月", around) or _DATE.search(around):
        return None
    num_months = 12 if match[0] == "全年" else 6
    return _units_match(match, num_months, _MONTH)


def _weekdays(match: re.Match[str], text: str) -> FormMatch | None:
    """从星期一到星期五 in a text with 每天: 5 days."""
    around = text_around(match, text)
    first, last = (_WEEKDAYS.index(match[group].replace("天", "日")) for group in ("first", "last"))
    if last <= first or not _DAY.rate.search(around) or _is_counted("天", around):
        return None
    return _units_match(match, last - first + 1, _DAY)


def _rate_for_a_period(match: re.Match[str], text: str) -> FormMatch | None:
    """每周 in a text that asks for each day, or that has 每天 and asks for each week: 7 days."""
    period = _period_of(match["name"], text_around(match, text))
    if period is None:
        return None
    asked = (rf"每个?{match['name']}", period.unit.rate.pattern)
    if not asks_for(rf"(?:{'|'.join(asked)})[^，。；,;？?]{{0,40}}(?:多少|几)", text):
        return None
    return _units_match(match, period.num_units, period.unit, group="period")


def _part_of_an_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """20分钟 in a text with 每小时: a third of an hour."""
    return _minutes_in_hours(match, number_of(match["number"]), text)


def _quarter_hours(match: re.Match[str], text: str) -> FormMatch | None:
    """三刻钟 in a text with 一小时40元: 0.75 hours."""
    return _minutes_in_hours(match, 15 * number_of(match["number"]), text)


def _minutes_in_hours(match: re.Match[str], minutes: Fraction | None, text: str) -> FormMatch | None:
    """Minutes as a part of an hour, in a text with a rate for each hour."""
    around = text_around(match, text)
    if minutes is None or not _HOUR.rate.search(around) or _MINUTE.rate.search(around):
        return None
    if asks_for("(?:多少|几)分", text):
        return None
    return _units_match(match, minutes / 60, _HOUR)


def _months(match: re.Match[str], text: str) -> FormMatch | None:
    """1~6月 in a text with 每月: 6 months."""
    around = text_around(match, text)
    first = int(match["first"])
    last = int(match["last"])
    if not 0 < first < last <= 12 or not _MONTH.rate.search(around) or _is_counted("个月", around):
        return None
    return _units_match(match, last - first + 1, _MONTH)


def _units_match(match: re.Match[str], value: Fraction | int, unit: _Unit, group: int | str = 0) -> FormMatch:
    read = number_match(match, value, unit=unit.name, group=group)
    note = f"{match[group]} was read as {read.literal}{unit.name}, because the text has a rate for this unit"
    return replace(read, note=note)


CHINESE_PERIODS = (
    NumberForm(
        "periods of a rate",
        re.compile(
            rf"(?<![第每头上下这那前后四周])(?<!星期){START}(?P<number>半|{NUMBER})个?{_NAME}(?P<half>半)?{_NOT_AFTER}"
        ),
        _in_units_of_the_rate,
        "每 天天 日均 时速 月租 月薪 照 同样",
    ),
    NumberForm("whole years", re.compile("全年|[上下]半年(?!度)"), _whole_year, "年"),
    NumberForm(
        "weekdays",
        re.compile(
            r"从?(?:星期|周)(?P<first>[一二三四五六日天])(?:到|至|[~～—-])(?:星期|周)(?P<last>[一二三四五六日天])"
        ),
        _weekdays,
        "星期 周",
    ),
    NumberForm(
        "months",
        re.compile(
            r"(?<![\d年.])从?(?P<first>\d{1,2})月?份?\s?(?:[~～—–-]{1,2}|至|到)\s?(?P<last>\d{1,2})月份?(?![\d个])"
        ),
        _months,
        "月",
    ),
    NumberForm("quarter hours", re.compile(rf"{START}(?P<number>[一二两三1-3])刻钟"), _quarter_hours, "刻钟"),
    NumberForm(
        "rates for a period",
        re.compile(rf"(?<=每)(?P<period>个?{_NAME}){_NO_WEEKDAY}{_NOT_AFTER}"),
        _rate_for_a_period,
        "每",
    ),
)
"""Forms for solvers that were trained with converted units, before those of several units."""

PARTS_OF_AN_HOUR = (
    NumberForm(
        "parts of an hour",
        re.compile(rf"(?<![时点零]){START}(?P<number>{NUMBER})\s?(?:分钟?|min)(?![之米数a-z])"),
        _part_of_an_hour,
        "分 min",
    ),
)
"""Forms for these solvers, after those of several units."""

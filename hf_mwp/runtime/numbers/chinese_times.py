"""Forms of clock times in Chinese texts: 上午8:30, 7时20分, 两点半, 差一刻八点."""

import re
from fractions import Fraction

from .chinese_numbers import CHARACTERS, MINUTES_OF_PARTS, START, TIME_WORDS, number_of
from .number_form import FormMatch, NumberForm, asks_for, number_match, text_around, text_before, text_beside


_AFTER_MINUTES = "(?=[到至睡起考出开上下放从离去回跑走写做吃完就才还停结来，,。])"
_TIME_WITH_MINUTES = re.compile(
    rf"[时点](?:[\d零一二三四五六七八九十]{{1,3}}分|半|[一三]刻|(?:[0-5]\d|[二三四五]十){_AFTER_MINUTES})|\d[:：]\d\d"
    r"|差(?:一刻|[\d一二三四五六七八九十]{1,3}分)[\d一两三四五六七八九十]{1,2}点"
)
_PART_OF_AN_HOUR = re.compile(r"[\d一二两三四五六七八九十][点时](?:半|[一三]刻)")
_NEXT_DAY = re.compile("(?:第二天|次日|隔天|翌日)(?:的?(?:早上|早晨|清晨|凌晨|上午|中午))?\\Z")
_EARLIER_TIME = re.compile(r"\d[:：]\d\d|[\d一二三四五六七八九十][时点]")
_MORNING = ("上午", "早上", "早晨", "凌晨", "次日", "第二天", "今早")
_AFTERNOON = ("下午", "晚上", "傍晚", "昨晚", "今晚", "当晚")
_NIGHT = re.compile("晚|夜")
_AFTER_THE_NIGHT = ("早上", "早晨", "清晨", "凌晨", "今早")


def _clock_time(match: re.Match[str], text: str) -> FormMatch | None:
    """上午8:30, 7时20分, 两点半: in minutes if minutes are asked for, otherwise in hours."""
    hours = number_of(match["hours"])
    minutes = number_of(match["minutes"] or "零")
    if match["part"]:
        minutes = MINUTES_OF_PARTS[match["part"]]
    if hours is None or minutes is None or hours > 24 or minutes >= 60:
        return None
    around = text_around(match, text)
    if not TIME_WORDS.search(around) or "比" in around:
        return None
    if not (match["minutes"] or match["part"] or _asks_minutes(match, text)):
        return _full_hour(match, text, hours)
    # In words, two times with minutes: 9时 and 35分 may be numbers of their own.
    num_times = len(_TIME_WITH_MINUTES.findall(around))
    if ":" not in match[0] and "：" not in match[0] and num_times < 2 and not _PART_OF_AN_HOUR.search(around):
        return None
    return _time_match(match, text, hours, minutes)


def _full_hour(match: re.Match[str], text: str, hours: Fraction) -> FormMatch | None:
    """上午8时 and 下午2时: the equations of the datasets have 14-8. 下午走了2时 is a duration."""
    if _is_on_the_next_day(match, text):
        return number_match(match, hours + 24, group="hours")
    if _is_after_noon_of_an_interval(match, text, hours):
        return number_match(match, hours + 12, group="hours")
    is_time_of_day = text_before(match, text).endswith(_AFTERNOON)
    if not _is_afternoon(match, text, hours) or not is_time_of_day or asks_for("(?:多少|几)点|什么时", text):
        return None
    return number_match(match, hours + 12, group="hours")


def _time_before_an_hour(match: re.Match[str], text: str) -> FormMatch | None:
    """差一刻八点, 差5分8点, 8点差5分, in texts with other times."""
    hours = number_of(match["hours"] or match["first_hours"])
    missing = match["missing"] or match["last_missing"]
    minutes = Fraction(15) if missing == "一刻" else number_of(missing)
    rest = text_beside(match, text)
    if hours is None or minutes is None or hours > 24 or minutes >= 60 or not _EARLIER_TIME.search(rest):
        return None
    return _time_match(match, text, hours, -minutes)


def _time_match(match: re.Match[str], text: str, hours: Fraction, minutes: Fraction) -> FormMatch:
    if _is_on_the_next_day(match, text):
        hours += 24
    elif _is_afternoon(match, text, hours) or _is_after_noon_of_an_interval(match, text, hours):
        hours += 12
    value = 60 * hours + minutes
    if _asks_minutes(match, text):
        return number_match(match, value, unit="分")
    return number_match(match, value / 60, unit="时")


def _asks_minutes(match: re.Match[str], text: str) -> bool:
    return asks_for("(?:多少|几)分|多久[（(]分钟", text) or "每分" in text_around(match, text)


def _is_on_the_next_day(match: re.Match[str], text: str) -> bool:
    """Return whether 24 hours are added: 晚上10:30出发，第二天早上6:30到, 晚上11点睡，早上7点起."""
    before = text_before(match, text)
    if not _EARLIER_TIME.search(before):
        return False
    is_after_a_night = before.endswith(_AFTER_THE_NIGHT) and _NIGHT.search(before) is not None
    return is_after_a_night or _NEXT_DAY.search(before) is not None


def _is_afternoon(match: re.Match[str], text: str, hours: Fraction) -> bool:
    """Return whether 12 hours are added: after 下午, if the text also has times before noon or of the next day."""
    around = text_around(match, text)
    before = text_before(match, text)
    if hours >= 12 or not (any(word in around for word in _MORNING) or _is_first_afternoon(match, text)):
        return False
    last_morning = max(before.rfind(word) for word in _MORNING)
    last_afternoon = max(before.rfind(word) for word in _AFTERNOON)
    return last_afternoon > last_morning


def _is_after_noon_of_an_interval(match: re.Match[str], text: str, hours: Fraction) -> bool:
    """Return whether 12 hours are added to the second time of an interval without words for the parts of the day:
    8点半上班5点半下班, 12:10到1:50, 11点睡，6点半起."""
    first = _FIRST_TIME.search(text_before(match, text))
    if first is None or hours >= 12:
        return False
    first_hours = number_of(first["hours"])
    return first_hours is not None and hours < first_hours <= 12


def _is_first_afternoon(match: re.Match[str], text: str) -> bool:
    """Return whether a time is the end of something, and the first one in the afternoon, behind a time without a part
    of the day: 8:30上班，下午5:30下班, but not 电影7:00开始，下午4:15出门."""
    before = text_before(match, text)
    if not before.endswith(_AFTERNOON) or not _END_OF_SOMETHING.match(text, match.end()):
        return False
    earlier = before[:-2]
    # From 中午12时 to 下午5时, the solvers count 5 hours.
    if _NOON.search(earlier):
        return False
    return _EARLIER_TIME.search(earlier) is not None and not any(word in earlier for word in _AFTERNOON)


_HOURS = r"\d{1,2}|[一二两三四五六七八九十]{1,3}"
_FIRST_TIME = re.compile(
    rf"{START}(?P<hours>{_HOURS})(?:[:：]\d\d|[点时]钟?(?:半|[一三]刻|[\d零一二三四五六七八九十]{{1,3}}分?)?)"
    r"(?:[到至](?:下午)?|上班，?|[才就]?睡觉?的?，?)\Z"
)
_END_OF_SOMETHING = re.compile("[^，。,]{0,4}(?:[到完]|下班|下课|关门|结束|放学|回家|打烊|收工|散场)")
_NOON = re.compile("中午(?:12|十二)[点时](?![半一三\\d])")
_FEW_MINUTES = r"\d{1,2}|[一二三四五六七八九]|[一二]?十五?"

CHINESE_TIMES = (
    NumberForm(
        "clock time before an hour",
        re.compile(
            rf"差(?P<missing>一刻|(?:{_FEW_MINUTES})(?=分))分?(?:钟|到)?(?P<hours>{_HOURS})点钟?"
            rf"|{START}(?P<first_hours>{_HOURS})点差(?P<last_missing>一刻|(?:{_FEW_MINUTES})(?=分))分?"
        ),
        _time_before_an_hour,
        "差",
    ),
    NumberForm(
        "clock time",
        re.compile(r"(?<![\d:：.．])(?P<hours>\d{1,2})[:：](?P<minutes>\d\d)(?P<part>)(?![\d:：.．])"),
        _clock_time,
        ": ：",
    ),
    NumberForm(
        "clock time in words",
        re.compile(
            rf"{START}(?P<hours>{_HOURS})(?:时|点钟?)"
            rf"(?:(?P<minutes>\d{{1,2}}|[零一二三四五六七八九十]{{1,3}})(?:分(?![钟米之])|(?:(?<=点[0-5]\d)|(?<=点[二三四五]十)){_AFTER_MINUTES})"
            rf"|(?P<part>半|[一三]刻(?!钟))|(?![间\d多辰候半{CHARACTERS}]))"
        ),
        _clock_time,
        "时 点",
    ),
)

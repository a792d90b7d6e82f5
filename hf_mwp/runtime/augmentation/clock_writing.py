"""Ways to write the two clock times of an interval: 上午8:30 and 两点一刻, 9 am and half past two."""

import random
from dataclasses import dataclass


_NOON = 12 * 60
_DAY = 24 * 60
_ENGLISH_HOURS = (
    "twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
)  # fmt: skip
_CHINESE_HOURS = ("十二", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一")
_CHINESE_TENS = {5: "五", 10: "十", 20: "二十", 25: "二十五", 35: "三十五", 40: "四十", 50: "五十", 55: "五十五"}
_CHINESE_PARTS = {0: "", 15: "一刻", 30: "半", 45: "三刻"}


@dataclass(frozen=True)
class Interval:
    """The time between two clock times."""

    start: int  # minutes after midnight
    duration: int  # minutes, less than a day

    @property
    def end(self) -> int:
        """Return the minutes from the midnight before the start to the end."""
        return self.start + self.duration

    @property
    def is_over_night(self) -> bool:
        """Return whether it ends on the next day."""
        return self.end >= _DAY

    @property
    def is_in_one_half_day(self) -> bool:
        """Return whether both times are before noon, or both after it."""
        return self.start // _NOON == self.end // _NOON


def write_chinese_interval(interval: Interval, rng: random.Random) -> tuple[str, str]:
    """Return the two times of an interval in Chinese, such as 上午8:30 and 下午1:15, or 八点半 and 两点一刻."""
    style = rng.choice((_chinese_digits, _chinese_digits, _chinese_units, _chinese_words))
    has_24_hours = style is _chinese_digits and rng.random() < 0.4
    names_start = rng.random() < 0.6
    names_end = not interval.is_in_one_half_day or rng.random() < 0.3
    next_day = ""
    if interval.is_over_night:
        next_day = rng.choice(("第二天", "次日"))
    if has_24_hours:
        return style(interval.start % _DAY, rng), next_day + style(interval.end % _DAY, rng)
    start = style(_on_the_dial(interval.start), rng)
    end = style(_on_the_dial(interval.end), rng)
    if names_start or names_end:
        start = _part_of_the_day(interval.start, rng) + start
    if names_end:
        end = _part_of_the_day(interval.end % _DAY, rng) + end
    return start, next_day + end


def _on_the_dial(minutes: int) -> int:
    """Return a time as a clock shows it: 1:00 to 12:59."""
    on_the_dial = minutes % _NOON
    return on_the_dial if on_the_dial >= 60 else on_the_dial + _NOON


def _part_of_the_day(minutes: int, rng: random.Random) -> str:
    """Return the Chinese name of the part of the day."""
    hour = minutes // 60
    if hour < 6:
        return "凌晨"
    if hour < 12:
        return rng.choice(("上午", "早上"))
    if hour == 12:
        return "中午"
    if hour < 18:
        return "下午"
    return "晚上"


def _digits(minutes: int) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


def _chinese_digits(minutes: int, rng: random.Random) -> str:
    return _digits(minutes)


def _chinese_units(minutes: int, rng: random.Random) -> str:
    """8点20分, 8时."""
    hour, minute = divmod(minutes, 60)
    unit = rng.choice("点时")
    if minute == 30 and rng.random() < 0.5:
        return f"{hour}{unit}半"
    return f"{hour}{unit}{minute}分" if minute else f"{hour}{unit}"


def _chinese_words(minutes: int, rng: random.Random) -> str:
    """八点一刻, 八点二十分."""
    hour, minute = divmod(minutes, 60)
    start = f"{_CHINESE_HOURS[hour % 12]}点"
    if minute in _CHINESE_PARTS:
        return start + _CHINESE_PARTS[minute]
    if minute in _CHINESE_TENS:
        return f"{start}{_CHINESE_TENS[minute]}分"
    return _chinese_units(minutes, rng)


def write_english_interval(interval: Interval, rng: random.Random) -> tuple[str, str]:
    """Return the two times of an interval in English, such as 9 am and 5:30 pm, or half past two and four."""
    half_day = rng.choice((" am", "am", " a.m."))
    is_in_words = rng.choice((False, False, True))
    names_half_days = not interval.is_in_one_half_day or rng.random() < 0.5
    times = []
    for minutes in (interval.start % _DAY, interval.end % _DAY):
        if is_in_words:
            part = _english_part_of_the_day(minutes) if names_half_days else ""
            times.append(_english_words(_on_the_dial(minutes), rng) + part)
        elif names_half_days:
            times.append(_english_half_day(minutes, half_day))
        else:
            times.append(_digits(_on_the_dial(minutes)))
    return times[0], times[1]


def _english_half_day(minutes: int, half_day: str) -> str:
    """9 am, 5:30pm."""
    hour, minute = divmod(_on_the_dial(minutes), 60)
    time = f"{hour}:{minute:02d}" if minute else str(hour)
    return time + (half_day if minutes < _NOON else half_day.replace("a", "p"))


def _english_part_of_the_day(minutes: int) -> str:
    if minutes < _NOON:
        return " in the morning"
    return " in the afternoon" if minutes < 18 * 60 else " in the evening"


def _english_words(minutes: int, rng: random.Random) -> str:
    """Half past two, a quarter to three, ten past four, five o'clock."""
    hour, minute = divmod(minutes, 60)
    this_hour = _ENGLISH_HOURS[hour % 12]
    next_hour = _ENGLISH_HOURS[(hour + 1) % 12]
    a_quarter = rng.choice(("quarter", "a quarter"))
    return {
        0: f"{this_hour} o'clock",
        5: f"five past {this_hour}",
        10: f"ten past {this_hour}",
        15: f"{a_quarter} past {this_hour}",
        20: f"twenty past {this_hour}",
        30: f"half past {this_hour}",
        40: f"twenty to {next_hour}",
        45: f"{a_quarter} to {next_hour}",
        50: f"ten to {next_hour}",
        55: f"five to {next_hour}",
    }.get(minute) or _digits(minutes)

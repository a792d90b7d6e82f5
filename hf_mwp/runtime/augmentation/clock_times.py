"""Generated problems about clock times: how long a journey takes, what a shift from 9 am to 5 pm pays."""

import random
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from string import Formatter
from typing import Any

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.numbers.digit_numbers import literal_of
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_kinds import SPACES, check_story_language
from .story_names import STORY_NAMES


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_READING = "people"
_NOON = 12 * 60
_DAY = 24 * 60
_ENGLISH_HOURS = (
    "twelve", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven",
)  # fmt: skip
_CHINESE_HOURS = ("十二", "一", "两", "三", "四", "五", "六", "七", "八", "九", "十", "十一")
_CHINESE_TENS = {5: "五", 10: "十", 20: "二十", 25: "二十五", 35: "三十五", 40: "四十", 50: "五十", 55: "五十五"}
_CHINESE_PARTS = {0: "", 15: "一刻", 30: "半", 45: "三刻"}


@dataclass(frozen=True)
class _Interval:
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


@checked
def write_clock_times(count: int, seed: int = 0, language: str = "en") -> Iterator[MathWordProblem]:
    """
    Write problems about the time between two clock times. Their equations have the numbers that the reading
    `"people"` finds: the time between 7:20 and 8:05 is `485-440`, and the time from 9 am to 5 pm in a text with other
    numbers `8`.

    Args:
        count (`int`): Number of problems. Some may be equal.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.
        language (`str`, *optional*, defaults to `"en"`): `"en"` or `"zh"`.

    Yields:
        [`MathWordProblem`]: Problems with equation and answer, whose texts are read with the reading `"people"`; their
            ids are `clock-times-0`, `clock-times-1`, ...

    Example:

    ```python
    >>> for problem in write_clock_times(2):
    ...     print(problem.text, problem.equation, problem.answer)
    ```
    """
    check_story_language(language)
    rng = random.Random(f"clock times {language} {seed}")
    num_written = 0
    while num_written < count:
        problem = _write(f"clock-times-{num_written}", language, rng)
        if problem is not None:
            yield problem
            num_written += 1


def _write(problem_id: str, language: str, rng: random.Random) -> MathWordProblem | None:
    """Return a problem, or `None` if the numbers that are read from its text do not lead to its answer."""
    template = rng.choice(_TEXTS[language])
    pattern = rng.choice(template["texts"]) + SPACES[language] + rng.choice(template["questions"])
    interval = _choose_interval(template["unit"], rng)
    duration = Fraction(interval.duration)
    if template["unit"] == "hours":
        duration /= 60
    numbers = _choose_numbers(duration, rng)
    write_times = {"en": _write_english, "zh": _write_chinese}[language]
    start, end = write_times(interval, rng)
    words = {"name": rng.choice(STORY_NAMES[language]), "start": start, "end": end}
    text = pattern.format(**words, **numbers)
    if language == "en":
        # A full stop behind "9 a.m." and another one.
        text = text.replace("..", ".")
    answer = Expression.from_infix(template["equation"].format(duration=literal_of(duration), **numbers)).evaluate(())
    problem = MathWordProblem(text, id=problem_id, language=language, number_reading=_READING)
    literals = _literals_as_read(pattern, problem.numbers)
    if answer <= 0 or literals is None:
        return None
    problem = problem.with_equation(template["equation"].format(**literals))
    if problem.equation_value != answer or problem.constants:
        return None
    return MathWordProblem(text, problem.equation, literal_of(answer), problem_id, language, number_reading=_READING)


def _choose_interval(unit: str, rng: random.Random) -> _Interval:
    """Return an interval of up to 16 hours, in half hours if its unit is hours, otherwise in minutes."""
    if unit == "hours":
        return _Interval(30 * rng.randrange(10, 46), 30 * rng.randrange(2, 33))
    step = rng.choice((5, 5, 5, 1))
    start = step * rng.randrange(6 * 60 // step, 21 * 60 // step)
    return _Interval(start, step * rng.randrange(15 // step, 200 // step))


def _choose_numbers(duration: Fraction, rng: random.Random) -> dict[str, Any]:
    """Return the other numbers of a text; divisions by and of the duration have whole results."""
    parts = [part for part in (10, 12, 15, 20, 25, 30, 40, 45) if duration % part == 0]
    speed = rng.choice((12, 15, 16, 18, 20, 24, 40, 45, 50, 60, 70, 80, 90, 110))
    return {
        "days": rng.randrange(3, 7),
        "pause": rng.choice((5, 8, 10, 12, 15, 20)),
        "more": rng.choice((6, 7, 14, 16, 18, 25)),
        "break": rng.choice(("2", "2", "0.5", "1.5")),
        "rate": rng.choice((6, 8, 24, 50, 55, 60, 65, 70, 80, 90, 120, 150, 200)),
        "speed": speed,
        "total": literal_of(speed * duration),
        "part": rng.choice(parts or [5]),
    }


def _literals_as_read(pattern: str, numbers: tuple[str, ...]) -> dict[str, str] | None:
    """Return the literals of a text's numbers by the names of the pattern, and that of the duration. The result is
    `None` if the text has more numbers or less than the pattern."""
    names = [name for _, name, _, _ in Formatter().parse(pattern) if name not in (None, "name")]
    if len(numbers) == len(names):
        literals = dict(zip(names, numbers, strict=True))
        return {**literals, "duration": f"({literals['end']}-{literals['start']})"}
    place = names.index("start")
    if len(numbers) == len(names) - 1 and names[place + 1 : place + 2] == ["end"]:
        # The interval is one number.
        names[place : place + 2] = ["duration"]
        return dict(zip(names, numbers, strict=True))
    return None


def _write_chinese(interval: _Interval, rng: random.Random) -> tuple[str, str]:
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


def _chinese_digits(minutes: int, rng: random.Random) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


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


def _write_english(interval: _Interval, rng: random.Random) -> tuple[str, str]:
    """Return the two times of an interval in English, such as 9 am and 5:30 pm, or half past two and four."""
    half_day = rng.choice((" am", "am", " a.m."))
    style = rng.choice((_english_digits, _english_digits, _english_words))
    has_half_days = not interval.is_in_one_half_day or rng.random() < 0.5
    times = []
    for minutes in (interval.start % _DAY, interval.end % _DAY):
        on_the_dial = _on_the_dial(minutes)
        if style is _english_words:
            time = _english_words(on_the_dial, rng)
            if has_half_days:
                time += _english_part_of_the_day(minutes)
        elif has_half_days:
            hour, minute = divmod(on_the_dial, 60)
            time = f"{hour}:{minute:02d}" if minute else str(hour)
            time += half_day if minutes < _NOON else half_day.replace("a", "p")
        else:
            time = _english_digits(on_the_dial, rng)
        times.append(time)
    return times[0], times[1]


def _english_part_of_the_day(minutes: int) -> str:
    if minutes < _NOON:
        return " in the morning"
    return " in the afternoon" if minutes < 18 * 60 else " in the evening"


def _english_digits(minutes: int, rng: random.Random) -> str:
    return f"{minutes // 60}:{minutes % 60:02d}"


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
    }.get(minute) or _english_digits(minutes, rng)

"""Generated problems about clock times: how long a journey takes, what a shift from 9 am to 5 pm pays."""

import random
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from string import Formatter
from typing import Any

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .clock_writing import Interval, write_chinese_interval, write_english_interval
from .story_kinds import READING, SPACES, check_story_language
from .story_names import STORY_NAMES


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))


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
    write_times = {"en": write_english_interval, "zh": write_chinese_interval}[language]
    start, end = write_times(interval, rng)
    words = {"name": rng.choice(STORY_NAMES[language]), "start": start, "end": end}
    text = pattern.format(**words, **numbers)
    if language == "en":
        # A full stop behind "9 a.m." and another one.
        text = text.replace("..", ".")
    equation = template["equation"].format(duration=literal_of(duration), **numbers)
    answer = Expression.from_infix(equation).evaluate(())
    problem = MathWordProblem(text, id=problem_id, language=language, number_reading=READING)
    literals = _literals_as_read(pattern, problem.numbers)
    if answer <= 0 or literals is None:
        return None
    problem = problem.with_equation(template["equation"].format(**literals))
    if problem.equation_value != answer or problem.constants:
        return None
    return MathWordProblem(text, problem.equation, literal_of(answer), problem_id, language, number_reading=READING)


def _choose_interval(unit: str, rng: random.Random) -> Interval:
    """Return an interval of up to 16 hours, in half hours if its unit is hours, otherwise in minutes."""
    if unit == "hours":
        return Interval(30 * rng.randrange(10, 46), 30 * rng.randrange(2, 33))
    step = rng.choice((5, 5, 5, 1))
    start = step * rng.randrange(6 * 60 // step, 21 * 60 // step)
    return Interval(start, step * rng.randrange(15 // step, 200 // step))


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
    first = names.index("start")
    if len(numbers) == len(names) - 1 and names[first : first + 2] == ["start", "end"]:
        # The interval is one number.
        names[first : first + 2] = ["duration"]
        return dict(zip(names, numbers, strict=True))
    return None

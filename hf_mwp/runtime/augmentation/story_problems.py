"""Generated problems of the kinds that textbooks and people ask: change, fares, averages, ages, trees along a road."""

import random
import tomllib
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from string import Formatter
from typing import Any

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.numbers.digit_numbers import literal_of
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_names import STORY_NAMES


_SPACES = {"en": " ", "zh": ""}  # between a text and its question
_READING = "people"
_MAX_ANSWER = 10**6
_MAX_TRIES = 1000  # for one problem


@checked
def write_stories(count: int, seed: int = 0, language: str = "en") -> Iterator[MathWordProblem]:
    """
    Write problems of the kinds in `stories_en.toml` and `stories_zh.toml`. Their texts are read with the reading
    `"people"`.

    Args:
        count (`int`): Number of problems. Some may be equal.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.
        language (`str`, *optional*, defaults to `"en"`): `"en"` or `"zh"`.

    Yields:
        [`MathWordProblem`]: Problems with equation and answer; their `kind` is the name of the kind, and their ids are
            `stories-0`, `stories-1`, ...

    Example:

    ```python
    >>> for problem in write_stories(2):
    ...     print(problem.text, problem.equation, problem.answer)
    ```
    """
    if language not in _SPACES:
        raise ValueError(f"`language` must be one of {', '.join(_SPACES)}, not {language!r}.")
    kinds = _load_kinds(language)
    rng = random.Random(f"stories {language} {seed}")
    for index in range(count):
        yield _write(rng.choice(kinds), f"stories-{index}", language, rng)


def _load_kinds(language: str) -> list[dict[str, Any]]:
    path = Path(__file__).with_name(f"stories_{language}.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))["kinds"]


def _write(kind: dict[str, Any], problem_id: str, language: str, rng: random.Random) -> MathWordProblem:
    """Return a problem of a kind: the first that can be read and has an answer of the kind."""
    for _ in range(_MAX_TRIES):
        problem = _try(kind, problem_id, language, rng)
        if problem is not None:
            return problem
    raise ValueError(f"The kind {kind['name']!r} in stories_{language}.toml has no problem with a possible answer.")


def _try(kind: dict[str, Any], problem_id: str, language: str, rng: random.Random) -> MathWordProblem | None:
    """Return a problem of a kind, or `None` if its answer is not possible, or if its text is read differently."""
    pattern = rng.choice(kind["texts"]) + _SPACES[language] + rng.choice(kind["questions"])
    numbers = {name: _choose_number(values, rng) for name, values in kind["numbers"].items()}
    literals = {name: literal_of(number) for name, number in numbers.items()}
    constants = {Fraction(constant) for constant in kind.get("constants", [])}
    used = {name for _, name, _, _ in Formatter().parse(pattern) if name in numbers}
    if len({numbers[name] for name in used} - constants) < len(used):
        # Which of two equal numbers the equation means would be a guess.
        return None
    text = pattern.format(**_choose_words(kind, language, rng), **literals)
    equation = kind["equation"].format(**literals)
    try:
        answer = Expression.from_infix(equation).evaluate(())
    except ExpressionError:
        return None
    if not _is_possible(answer, kind.get("answers", "whole")):
        return None
    problem = MathWordProblem(
        text, equation, literal_of(answer), problem_id, language, kind=kind["name"], number_reading=_READING
    )
    if problem.constants - constants or problem.equation_value != answer:
        return None
    return problem


def _choose_words(kind: dict[str, Any], language: str, rng: random.Random) -> dict[str, str]:
    """Return the words of a text by their names: three people, and the words that the kind has."""
    name, other_name, third_name = rng.sample(STORY_NAMES[language], 3)
    words = {"name": name, "other": other_name, "third": third_name}
    for word, choices in kind.get("words", {}).items():
        words[word] = rng.choice(choices)
    return words


def _choose_number(values: list[Any] | str, rng: random.Random) -> Fraction:
    """Return one of a list of numbers, or a number of a range such as `"2..30"` or, in steps, `"0.5..9.5 by 0.5"`."""
    if isinstance(values, list):
        return Fraction(str(rng.choice(values)))
    bounds, _, step = values.partition(" by ")
    first, _, last = bounds.partition("..")
    size = Fraction(step or 1)
    num_steps = int((Fraction(last) - Fraction(first)) / size)
    return Fraction(first) + size * rng.randrange(num_steps + 1)


def _is_possible(answer: Fraction | float, answers: str) -> bool:
    """Return whether an answer is of the given sort: `whole`, `decimal` (up to two decimals), `fraction`, or
    `negative`, which also allows whole numbers below zero."""
    if not isinstance(answer, Fraction) or not -_MAX_ANSWER < answer < _MAX_ANSWER:
        return False
    if answers == "negative":
        return answer.denominator == 1
    if answer <= 0:
        return False
    if answers == "whole":
        return answer.denominator == 1
    return answers == "fraction" or (100 * answer).denominator == 1

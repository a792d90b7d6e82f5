"""Kinds of generated problems: texts and questions with placeholders for numbers, and an equation."""

import random
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from string import Formatter
from typing import Any, Self

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.expressions.numbers import literal_of
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem

from .story_dates import COUNTED_ENDS, choose_dates
from .story_names import STORY_NAMES


SPACES = {"en": " ", "zh": ""}
"""Separators of a text and its question, by language."""
READING = "people"
"""Reading of the numbers in generated problems."""
_MAX_ANSWER = 10**6
_ANSWERS = ("whole", "decimal", "fraction", "negative")
_PEOPLE = ("name", "other", "third")
_DATES = ("start", "end")
_DAYS = "days"


def check_story_language(language: str) -> None:
    """Raise `ValueError` if no problems can be generated in a language."""
    if language not in SPACES:
        raise ValueError(f"`language` must be one of {', '.join(SPACES)}, not {language!r}.")


@dataclass(frozen=True)
class StoryKind:
    """
    A kind of problem: texts and questions with placeholders, and an equation.

    Args:
        name (`str`): Name of the kind.
        texts (`list[str]`): Texts with placeholders `{...}` for numbers and words, and for people: `{name}`,
            `{other}` and `{third}`.
        questions (`list[str]`): Questions, each of which fits all texts.
        equation (`str`): Equation with the placeholders of the numbers.
        numbers (`dict[str, list | str]`): For each placeholder, the numbers as a list or a range: `"2..30"`,
            `"0.5..9.5 by 0.5"`.
        words (`dict[str, list[str]]`, *optional*): For each placeholder, the words.
        constants (`list[str]`, *optional*): Numbers of the equation that are not in the text.
        answers (`str`, *optional*, defaults to `"whole"`): Possible answers above zero: `"whole"`, `"decimal"` (up to
            two decimals) or `"fraction"` (any); `"negative"` stands for whole numbers that may be below zero.
        counted_ends (`str`, *optional*): Which of the dates `{start}` and `{end}` of the texts are counted as days:
            `"both"`, `"one"` or `"none"`. `{days}` in the equation is the number of days.
        unit_factors (`dict[str, str]`, *optional*): For each placeholder of a number that is read in another unit, the
            factor: `"1/100"` for 200米 in a question for 公顷, which is read as 2百米. The equation has 2.

    Raises:
        ValueError: If a field is missing, unknown or invalid. The message names the kind and the field.
    """

    name: str
    texts: list[str]
    questions: list[str]
    equation: str
    numbers: dict[str, list[Any] | str]
    words: dict[str, list[str]] = field(default_factory=dict)
    constants: list[str] = field(default_factory=list)
    answers: str = "whole"
    counted_ends: str | None = None
    unit_factors: dict[str, str] = field(default_factory=dict)

    def __post_init__(self):
        for name in ("texts", "questions"):
            if not getattr(self, name):
                raise ValueError(f"Kind {self.name!r}: `{name}` is empty.")
        if self.answers not in _ANSWERS:
            raise ValueError(
                f"Kind {self.name!r}: `answers` must be one of {', '.join(_ANSWERS)}, not {self.answers!r}."
            )
        if self.counted_ends is not None and self.counted_ends not in COUNTED_ENDS:
            raise ValueError(
                f"Kind {self.name!r}: `counted_ends` must be one of {', '.join(COUNTED_ENDS)}, not "
                f"{self.counted_ends!r}."
            )
        self._check_placeholders()

    def _check_placeholders(self) -> None:
        """Raise `ValueError` if a text, a question or the equation has an unknown placeholder."""
        known_in_equation = set(self.numbers)
        known_in_texts = {*self.numbers, *self.words, *_PEOPLE}
        if self.counted_ends is not None:
            known_in_equation.add(_DAYS)
            known_in_texts.update(_DATES)
        for pattern in (*self.texts, *self.questions):
            unknown = _placeholders(pattern) - known_in_texts
            if unknown:
                raise ValueError(
                    f"Kind {self.name!r}: {pattern!r} has the unknown placeholder {sorted(unknown)[0]!r}."
                )
        unknown = _placeholders(self.equation) - known_in_equation
        if unknown:
            raise ValueError(f"Kind {self.name!r}: `equation` has the unknown placeholder {sorted(unknown)[0]!r}.")
        unknown = set(self.unit_factors) - set(self.numbers)
        if unknown:
            raise ValueError(f"Kind {self.name!r}: `unit_factors` has the unknown placeholder {sorted(unknown)[0]!r}.")

    @classmethod
    def from_table(cls, table: Mapping[str, Any]) -> Self:
        """Return the kind of a table in a TOML file."""
        name = table.get("name", "without a name")
        field_names = {field_of_kind.name for field_of_kind in fields(cls)}
        unknown = set(table) - field_names
        if unknown:
            raise ValueError(f"Kind {name!r}: unknown field {sorted(unknown)[0]!r}.")
        for required in ("name", "texts", "questions", "equation", "numbers"):
            if required not in table:
                raise ValueError(f"Kind {name!r}: `{required}` is missing.")
        return cls(**table)

    @cached_property
    def constant_values(self) -> frozenset[Fraction]:
        """Return the values of the constants."""
        return frozenset(Fraction(str(constant)) for constant in self.constants)

    def try_to_write(self, problem_id: str, language: str, rng: random.Random) -> MathWordProblem | None:
        """Return a problem, or `None` if its answer is not possible or numbers of its text are read differently."""
        pattern = rng.choice(self.texts) + SPACES[language] + rng.choice(self.questions)
        words = self._choose_words(language, rng)
        numbers = {name: _choose_number(values, rng) for name, values in self.numbers.items()}
        if self.counted_ends is not None:
            dates = choose_dates(self.counted_ends, language, rng)
            words.update(start=dates.start, end=dates.end)
            numbers[_DAYS] = Fraction(dates.num_days)
        text = pattern.format(**words, **_literals_of(numbers))
        for name, factor in self.unit_factors.items():
            numbers[name] *= Fraction(factor)
        names_in_text = {*_placeholders(pattern), _DAYS}
        in_text = [number for name, number in numbers.items() if name in names_in_text]
        if len(set(in_text) - self.constant_values) < len(in_text):
            # Which of two equal numbers the equation means would be a guess.
            return None
        equation = self.equation.format(**_literals_of(numbers))
        answer = _value_of(equation)
        if answer is None or not _is_possible(answer, self.answers):
            return None
        problem = MathWordProblem(
            text, equation, literal_of(answer), problem_id, language, kind=self.name, number_reading=READING
        )
        if problem.constants - self.constant_values or problem.equation_value != answer:
            return None
        return problem

    def _choose_words(self, language: str, rng: random.Random) -> dict[str, str]:
        """Return the words of a text by their placeholders: three people, and the words of the kind."""
        people = rng.sample(STORY_NAMES[language], len(_PEOPLE))
        words = dict(zip(_PEOPLE, people, strict=True))
        for name, choices in self.words.items():
            words[name] = rng.choice(choices)
        return words


def load_story_kinds(path: str | Path) -> list[StoryKind]:
    """Return the kinds of a TOML file. Raises `ValueError`, which names file, kind and field, if one is invalid."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8"))["kinds"]
        return [StoryKind.from_table(table) for table in tables]
    except KeyError as error:
        raise ValueError(f"{path} has no table [[kinds]].") from error
    except (tomllib.TOMLDecodeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def _placeholders(pattern: str) -> set[str]:
    """Return the names of the placeholders in a text or an equation."""
    return {name for _, name, _, _ in Formatter().parse(pattern) if name is not None}


def _literals_of(numbers: Mapping[str, Fraction]) -> dict[str, str]:
    """Return numbers as they are written in texts and equations."""
    return {name: literal_of(number) for name, number in numbers.items()}


def _choose_number(values: list[Any] | str, rng: random.Random) -> Fraction:
    """Return one of a list of numbers, or a number of a range such as `"2..30"` or, in steps, `"0.5..9.5 by 0.5"`."""
    if isinstance(values, list):
        return Fraction(str(rng.choice(values)))
    bounds, _, step = values.partition(" by ")
    first, _, last = bounds.partition("..")
    size = Fraction(step or 1)
    num_steps = int((Fraction(last) - Fraction(first)) / size)
    return Fraction(first) + size * rng.randrange(num_steps + 1)


def _value_of(equation: str) -> Fraction | None:
    """Return the exact value of an equation, or `None` if it has none."""
    try:
        value = Expression.from_infix(equation).evaluate(())
    except ExpressionError:
        return None
    return value if isinstance(value, Fraction) else None


def _is_possible(answer: Fraction, answers: str) -> bool:
    """Return whether an answer is one of the possible answers of a kind."""
    if abs(answer) >= _MAX_ANSWER:
        return False
    if answers == "negative":
        return answer.denominator == 1
    if answer <= 0:
        return False
    if answers == "whole":
        return answer.denominator == 1
    return answers == "fraction" or (100 * answer).denominator == 1

"""Augmentation with casual wording: problems as people type them in chats and forums."""

import random
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from hf_mwp.runtime.problems.clauses import find_question
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .rewriting import rewrite_share
from .story_kinds import SPACES


MAX_REPLACEMENTS = 4
"""Largest number of expressions that are replaced in a problem."""
OMISSION = 0.4
"""Share of the problems that leave out units and words: 烤肉268，饮料32."""
OPENING = 0.3
"""Share of the problems that get a sentence before the text."""
ASIDE = 0.1
"""Share of the problems that get a remark before the question."""
CLOSING = 0.2
"""Share of the problems that get a sentence behind the question."""

_MAX_NUMBERS = 12  # in problems that are reworded, so that some of `_NUMBERS` are unused
_NUMBERS = range(2, 30)  # in openings, asides and closings: ages, grades, pages


@checked
def reword_casually(
    problems: Iterable[MathWordProblem], seed: int = 0, share: float = 1.0
) -> Iterator[MathWordProblem | None]:
    """
    Write each problem as people type it: 元 as 块, 每本3元 as 3块钱一本, "How many" as "how many", without a question
    mark, without units that go without saying (烤肉268，饮料32), with a greeting, a thanks or an aside. Some of these
    have a number that the question does not need.

    The labels are exact: a new text is used only if the reading `"people"` finds the same values, in the same order,
    as in the old, apart from those that were added. The result depends only on the arguments.

    Args:
        problems (iterable of [`MathWordProblem`]): Problems with equation and answer.
        seed (`int`, *optional*, defaults to 0): Seed for the choice of problems and expressions.
        share (`float`, *optional*, defaults to 1.0): Share of the problems that are reworded.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with `number_reading="people"` and `-C` appended to its id, or
        `None` if the problem is not chosen, nothing in it can be replaced or the equation does not give the answer.

    Example:

    ```python
    >>> problem = MathWordProblem("小明买了3本书，每本15元，一共花了多少元？", "x=3*15", "45")
    >>> next(reword_casually([problem])).text
    ```
    """
    return rewrite_share(_reword, problems, seed, share, "casual ")


@dataclass(frozen=True)
class _Replacement:
    """Pattern of an expression, and the templates that may replace it."""

    pattern: re.Pattern[str]
    templates: list[str]


@dataclass(frozen=True)
class _Wording:
    """Omissions, replacements and additional sentences of a language."""

    omissions: list[re.Pattern[str]]
    replacements: list[_Replacement]
    openings: list[str]
    asides: list[str]
    closings: list[str]


@cache
def _load_wording(language: str) -> _Wording:
    """Return the wording of a language in `casual_wording.toml`."""
    tables = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
    table: dict[str, Any] = tables[language]
    replacements = [_Replacement(re.compile(row["pattern"]), row["with"]) for row in table["replacements"]]
    omissions = [re.compile(pattern) for pattern in table["omissions"]]
    return _Wording(omissions, replacements, table["openings"], table["asides"], table["closings"])


def _reword(problem: MathWordProblem, rng: random.Random) -> MathWordProblem | None:
    if not problem.agrees() or len(problem.values) > _MAX_NUMBERS:
        return None
    wording = _load_wording(problem.language)
    values_of_problem = problem.known_values
    unused = [number for number in _NUMBERS if number not in values_of_problem]
    rng.shuffle(unused)
    numbers = iter(unused)
    text = _with_aside(problem.text, problem.language, wording, next(numbers), rng)
    if rng.random() < OMISSION:
        text = _leave_out(text, wording)
    text = _replace_expressions(text, wording, rng)
    text = _with_opening_and_closing(text, SPACES[problem.language], wording, numbers, rng)
    new = replace(problem, text=text, id=f"{problem.id}-C", context="", kind="")
    if new.text == problem.text or not _has_numbers(new, problem):
        return None
    return new


def _leave_out(text: str, wording: _Wording) -> str:
    """Return a text without the units and words that people leave out."""
    for omission in wording.omissions:
        text = omission.sub("", text)
    return text


def _replace_expressions(text: str, wording: _Wording, rng: random.Random) -> str:
    """Return a text with some of the expressions that can be replaced."""
    possible = [replacement for replacement in wording.replacements if replacement.pattern.search(text)]
    num_replaced = min(rng.randint(1, MAX_REPLACEMENTS), len(possible))
    for replacement in rng.sample(possible, num_replaced):
        text = replacement.pattern.sub(rng.choice(replacement.templates), text)
    return text


def _with_aside(text: str, language: str, wording: _Wording, number: int, rng: random.Random) -> str:
    """Return a text, some with an aside before the question."""
    if rng.random() >= ASIDE:
        return text
    clauses, question = find_question(text, language)
    start = clauses[question][0] if clauses else 0
    aside = rng.choice(wording.asides).format(number=number)
    return f"{text[:start]}{SPACES[language]}{aside}{text[start:]}"


def _with_opening_and_closing(
    text: str, space: str, wording: _Wording, numbers: Iterator[int], rng: random.Random
) -> str:
    """Return a text, some with an opening or a closing; `numbers` are used in order."""
    if rng.random() < CLOSING:
        closing = rng.choice(wording.closings).format(number=next(numbers))
        text = f"{text}{space}{closing}"
    if rng.random() < OPENING:
        opening = rng.choice(wording.openings).format(number=next(numbers))
        text = f"{opening}{space}{text}"
    return text


def _has_numbers(new: MathWordProblem, problem: MathWordProblem) -> bool:
    """Return whether a new text has the numbers of the problem in their order, and the equation the same tree."""
    values_of_text = set(problem.values)
    kept_values = tuple(value for value in new.values if value in values_of_text)
    if kept_values != problem.values or not new.agrees():
        return False
    return new.expression.num_operators == problem.expression.num_operators

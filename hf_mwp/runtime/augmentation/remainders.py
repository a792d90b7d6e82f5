"""Generated problems about quotients with a remainder: boats for all children, full boxes of eggs, eggs left over."""

import math
import random
import tomllib
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_kinds import SPACES, check_story_language
from .story_names import STORY_NAMES


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_EQUATION = "{total}/{size}"
_REMAINDER = "remainder"


@checked
def write_remainders(
    count: int, seed: int = 0, language: str = "en", rounded: bool = True
) -> Iterator[MathWordProblem]:
    """
    Write problems that ask for the number of whole things that suffice, or that can be had, or for what is left over.
    The equation is the quotient, and the answer is the quotient, rounded up or down, or its remainder, as the
    plausibility re-ranker rounds it.

    Args:
        count (`int`): Number of problems. Some may be equal.
        seed (`int`, *optional*, defaults to 0): Seed of all choices.
        language (`str`, *optional*, defaults to `"en"`): `"en"` or `"zh"`.
        rounded (`bool`, *optional*, defaults to `True`): Whether the answers are rounded. Training data need the
            quotients themselves, since problems whose answer is not the value of their equation are left out.

    Yields:
        [`MathWordProblem`]: Problems with equation and answer; their ids are `remainders-0`, `remainders-1`, ...

    Example:

    ```python
    >>> for problem in write_remainders(2):
    ...     print(problem.text, problem.equation, problem.answer)
    ```
    """
    check_story_language(language)
    rng = random.Random(f"remainders {language} {seed}")
    for index in range(count):
        template = rng.choice(_TEXTS[language])
        story, things = rng.choice(template["texts"])
        text = story + SPACES[language] + rng.choice(template["questions"])
        numbers = _choose_numbers(rng)
        if template["rounding"] == _REMAINDER and _quotient(template, numbers).denominator == 1:
            # Nothing would be left over.
            numbers["total"] += 1
        text = text.format(name=rng.choice(STORY_NAMES[language]), things=things, **numbers)
        answer = _quotient(template, numbers)
        if rounded:
            answer = _rounded(answer, numbers["size"], template["rounding"])
        yield MathWordProblem(text, _equation(template, numbers), str(answer), f"remainders-{index}", language)


def _choose_numbers(rng: random.Random) -> dict[str, int]:
    size = rng.randrange(3, 25)
    more = rng.randrange(2, 10)
    # Every fourth quotient or so is whole, since the solver cannot see which.
    total = size * rng.randrange(3, 30) + rng.choice((0, rng.randrange(size), rng.randrange(size)))
    return {"total": total, "more": more, "size": size}


def _equation(template: Mapping[str, Any], numbers: Mapping[str, int]) -> str:
    return template.get("equation", _EQUATION).format(**numbers)


def _quotient(template: Mapping[str, Any], numbers: Mapping[str, int]) -> Fraction:
    return Fraction(Expression.from_infix(_equation(template, numbers)).evaluate(()))


def _rounded(quotient: Fraction, divisor: int, rounding: str) -> Fraction | int:
    """Return a quotient rounded `"up"` or `"down"`, or its remainder."""
    if rounding == "up":
        return math.ceil(quotient)
    if rounding == "down":
        return math.floor(quotient)
    return quotient % 1 * divisor

"""Generated problems whose quotient is rounded to whole things: boats for all children, full boxes of eggs."""

import math
import random
import tomllib
from collections.abc import Iterator
from pathlib import Path

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .story_kinds import SPACES, check_story_language
from .story_names import STORY_NAMES


_TEXTS = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_EQUATION = "{total}/{size}"
_ROUND = {"up": math.ceil, "down": math.floor}


@checked
def write_remainders(
    count: int, seed: int = 0, language: str = "en", rounded: bool = True
) -> Iterator[MathWordProblem]:
    """
    Write problems that ask for the number of whole things that suffice, or that can be had. The equation is the
    quotient, and the answer the quotient, rounded up or down as the plausibility re-ranker does.

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
        text = rng.choice(template["texts"]) + SPACES[language] + rng.choice(template["questions"])
        size = rng.randrange(3, 25)
        more = rng.randrange(2, 10)
        # Every fourth quotient or so is whole, since the solver cannot see which.
        total = size * rng.randrange(3, 30) + rng.choice((0, rng.randrange(size), rng.randrange(size)))
        numbers = {"total": total, "more": more, "size": size}
        text = text.format(name=rng.choice(STORY_NAMES[language]), **numbers)
        equation = template.get("equation", _EQUATION).format(**numbers)
        problem = MathWordProblem(text, equation, id=f"remainders-{index}", language=language)
        answer = problem.equation_value
        if rounded:
            answer = _ROUND[template["rounding"]](answer)
        yield MathWordProblem(text, equation, str(answer), problem.id, language)

"""Function that rewrites a share of problems."""

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem

from .story_kinds import READING


def rewrite_share(
    rewrite: Callable[[MathWordProblem, random.Random], MathWordProblem | None],
    problems: Iterable[MathWordProblem],
    seed: int,
    share: float,
    name: str = "",
) -> Iterator[MathWordProblem | None]:
    """Yield what `rewrite` makes of each problem, or `None` for problems that are not in the random share. The random
    numbers of a problem depend on the seed, its place, its text and `name` (with a space behind it)."""
    choice = random.Random(seed)
    for index, problem in enumerate(problems):
        if choice.random() >= share:
            yield None
            continue
        rng = random.Random(f"{name}{seed} {index} {problem.text}")
        yield rewrite(replace(problem, number_reading=READING), rng)

"""Distractors: clauses with numbers that the question does not need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .chinese_distractors import add_chinese_distractors
from .english_distractors import add_english_distractors
from .math_word_problem import MathWordProblem


def add_distractors(problems: Sequence[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Put numbers that the question does not need into each problem.

    In Chinese these are one to five clauses before the question: what another problem begins with, up to its first
    number or further ones, or a part of the things that the problem counts (其中3条是红的). Clauses with a unit of the
    problem are preferred, since they are harder to tell from what counts. In English they are one to three sentences
    that other problems begin with, at times with the name of the person that the problem is about. None has a value of
    the problem, of its answer or of its equation's constants, or speaks of what is asked for. The same arguments give
    the same problems.

    Args:
        problems (`Sequence[MathWordProblem]`): With equation and answer. Distractors come from problems in the same
            language.
        seed (`int`, *optional*, defaults to 0): Seed of the choice of clauses and places.

    Yields:
        [`MathWordProblem`] or `None`: for each problem the new one, with the number of distractors in its id; `None`
        where it has a single clause, or an equation that does not give its answer.

    Example:

    ```python
    >>> texts = ["食堂运来105千克萝卜，又运来85千克，一共运来多少千克萝卜？", "小红有15元，买了3支铅笔，还剩多少元？"]
    >>> problems = [MathWordProblem(texts[0], "x=105+85", "190"), MathWordProblem(texts[1], "x=15-3", "12")]
    >>> next(add_distractors(problems)).text
    ```
    """
    english = [problem for problem in problems if problem.language == "en"]
    chinese = [problem for problem in problems if problem.language == "zh"]
    made = {"en": add_english_distractors(english, seed), "zh": add_chinese_distractors(chinese, seed)}
    for problem in problems:
        yield next(made[problem.language])

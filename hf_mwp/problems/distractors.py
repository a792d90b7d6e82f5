"""Distractors: clauses with numbers that the question does not need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .chinese_distractors import add_chinese_distractors
from .english_distractors import add_english_distractors
from .math_word_problem import MathWordProblem


def add_distractors(problems: Sequence[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Add numbers to each problem that its question does not need.

    In Chinese one to five clauses are added before the question: the first clauses of another problem, or a part of
    the things that the problem counts (其中3条是红的). Clauses with a unit of the problem are preferred, because they
    are harder to ignore. In English one to three first sentences of other problems are added, some of them with the
    name of the problem's person. No distractor has a value of the problem, its answer or its constants, or mentions
    what is asked for. The result depends only on the arguments.

    Args:
        problems (`Sequence[MathWordProblem]`): Problems with equation and answer; those in the same language provide
            the distractors.
        seed (`int`, *optional*, defaults to 0): Seed of the choice of clauses and places.

    Yields:
        [`MathWordProblem`] or `None`: for each problem the new one, with the number of distractors in its id; `None`
        if it has a single clause, or its equation does not give its answer.

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

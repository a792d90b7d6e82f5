"""Augmentation with distractors: clauses with numbers that are not needed for the answer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hf_mwp.runtime.problems.math_word_problem import MathWordProblem
from hf_mwp.utils.checked_types import checked

from .chinese_distractors import add_chinese_distractors
from .english_distractors import add_english_distractors


@checked
def add_distractors(problems: Sequence[MathWordProblem], seed: int = 0) -> Iterator[MathWordProblem | None]:
    """
    Add distractors (numbers that are not needed for the answer) to each problem.

    In Chinese problems, one to five clauses are inserted: the first clauses of different problems, or the size of a
    part of a counted set (其中3条是红的). Clauses with a unit that occurs in the problem are preferred, because they
    are harder to ignore. In English problems, one to three sentences are inserted, each the first sentence of a
    different problem, sometimes with the name of the person in this problem. A distractor shares few words with the
    problem, and no number with its text, equation or answer. The result depends only on the arguments.

    Args:
        problems (`Sequence[MathWordProblem]`): Problems with equation and answer, and the source of the distractors.
        seed (`int`, *optional*, defaults to 0): Seed for the choice of clauses and positions.

    Yields:
        [`MathWordProblem`] or `None`: The new problem, with the number of distractors in its id, or `None` if the
        problem has a single clause, its equation does not give its answer, or no distractor fits.

    Example:

    ```python
    >>> texts = ["食堂运来105千克萝卜，又运来85千克，一共运来多少千克萝卜？", "小红有15元，买了3支铅笔，还剩多少元？"]
    >>> problems = [MathWordProblem(texts[0], "x=105+85", "190"), MathWordProblem(texts[1], "x=15-3", "12")]
    >>> next(add_distractors(problems)).text
    ```
    """
    english = [problem for problem in problems if problem.language == "en"]
    chinese = [problem for problem in problems if problem.language == "zh"]
    new_texts = {"en": add_english_distractors(english, seed), "zh": add_chinese_distractors(chinese, seed)}
    for problem in problems:
        new_text = next(new_texts[problem.language])
        if new_text is None:
            yield None
        else:
            text, num_added = new_text
            yield with_added_numbers(problem, text, num_added)


def with_added_numbers(problem: MathWordProblem, text: str, added: int, mark: str = "D") -> MathWordProblem | None:
    """Return the problem with a new `text` that contains `added` more numbers; `-{mark}{added}` is appended to its id.
    Returns `None` if `text` has a different number of numbers, or if the equation no longer gives the answer."""
    new = replace(problem, text=text, id=f"{problem.id}-{mark}{added}", context="")
    if not added or not new.agrees() or len(new.numbers) != len(problem.numbers) + added:
        return None
    if new.expression.num_operators != problem.expression.num_operators:
        return None
    return new

"""Helpers that create and check problems with additional numbers in the text (distractors)."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..expressions import ExpressionError
from .math_word_problem import MathWordProblem, ProblemError


def known_values(problem: MathWordProblem) -> set[Fraction | float | None]:
    """Return the values of the numbers in the text, of the answer, and of the constants in the equation."""
    return {*problem.values, problem.answer_value, *problem.constants}


def with_added_numbers(problem: MathWordProblem, text: str, added: int, mark: str = "D") -> MathWordProblem | None:
    """
    Return the problem with a new `text` that contains `added` more numbers; `-{mark}{added}` is appended to its id.
    Returns `None` if `text` has a different number of numbers, or if the equation no longer gives the answer.
    """
    new = replace(problem, text=text, id=f"{problem.id}-{mark}{added}", context="")
    try:
        same = new.expression.num_operators == problem.expression.num_operators and new.agrees()
    except (ExpressionError, ProblemError):
        return None
    return new if same and added and len(new.numbers) == len(problem.numbers) + added else None

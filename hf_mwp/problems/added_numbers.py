"""Problems with numbers added to their texts."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from ..expressions import ExpressionError, parse_number
from .errors import ProblemError
from .math_word_problem import MathWordProblem


def known_values(problem: MathWordProblem) -> set[Fraction | float | None]:
    """The values of a problem's text, of its answer and of the constants of its equation."""
    constants = {parse_number(leaf.token) for leaf in problem.expression.leaves() if not leaf.is_slot}
    return {*problem.values, problem.answer_value, *constants}


def with_added_numbers(problem: MathWordProblem, text: str, added: int, mark: str = "D") -> MathWordProblem | None:
    """
    The problem with another text, `mark` and the count of `added` numbers in its id; `None` if the text does not have
    so many numbers more, or the equation, read with it, another tree or value.
    """
    new = replace(problem, text=text, id=f"{problem.id}-{mark}{added}", context="")
    try:
        same = new.expression.num_operators == problem.expression.num_operators and new.agrees()
    except (ExpressionError, ProblemError):
        return None
    return new if same and added and len(new.numbers) == len(problem.numbers) + added else None

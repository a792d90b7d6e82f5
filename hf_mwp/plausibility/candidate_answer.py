"""Candidate answers: the values of a beam with their trees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from ..expressions import Expression, ExpressionError
from ..expressions.evaluation import Number, evaluate_postfix
from ..expressions.operators import PRECEDENCE
from .dimensions import Dimensions
from .question import Question


Step = tuple[str, Number, Number, Number]
"""An operation: operator, left and right operand, result."""

# Decimals beyond which a number counts as not exact, and significant digits that are counted.
MOST_DECIMALS, MOST_DIGITS = 4, 8


@dataclass(frozen=True)
class BeamTree:
    """A tree over number slots that a solver found, with its log probability and its place, from 0."""

    expression: Expression
    log_probability: float
    rank: int


@dataclass(frozen=True)
class CandidateAnswer:
    """
    A value with all the trees of a beam that have it.

    Args:
        question ([`Question`]): The question of the problem.
        value (`Fraction` or `float`): The value.
        trees (`tuple[BeamTree, ...]`): The trees, the most probable one first.
        postfix (`tuple[str, ...]`): Tokens of the first tree.
        steps (`tuple[Step, ...]`): Its operations.
    """

    question: Question
    value: Number
    trees: tuple[BeamTree, ...]
    postfix: tuple[str, ...]
    steps: tuple[Step, ...]

    @property
    def best(self) -> BeamTree:
        """The most probable tree."""
        return self.trees[0]

    @cached_property
    def log_mass(self) -> float:
        """Logarithm of the summed probability of the trees: those of equal value vote together."""
        top = self.best.log_probability
        return top + math.log(math.fsum(math.exp(tree.log_probability - top) for tree in self.trees))

    @cached_property
    def is_whole(self) -> bool:
        """Return whether the value is a whole number."""
        return is_whole(self.value)

    @cached_property
    def decimals(self) -> int:
        """Decimals of the value, see [`decimals`]."""
        return decimals(self.value)

    @cached_property
    def inner_results(self) -> tuple[Number, ...]:
        """Results of all operations but the last."""
        return tuple(step[3] for step in self.steps[:-1])

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Indices of the numbers in the first tree, repeated if it uses them repeatedly."""
        return tuple(int(token[1:]) for token in self.postfix if token[0] == "N")

    @cached_property
    def unused(self) -> tuple[int, ...]:
        """Indices of the numbers that it does not use."""
        used = set(self.slots)
        return tuple(index for index in range(len(self.question.values)) if index not in used)

    @cached_property
    def num_constants(self) -> int:
        """Number of constants that it uses."""
        return sum(token not in PRECEDENCE and token[0] != "N" for token in self.postfix)

    @cached_property
    def last_operator(self) -> str:
        """The operator that gives the value; empty for a lone number."""
        return self.steps[-1][0] if self.steps else ""

    @cached_property
    def dimensions(self) -> Dimensions:
        """Units of its operations."""
        return Dimensions.of(self.postfix, self.question.units)


def is_whole(number: Number) -> bool:
    """Return whether a number is whole."""
    return number.denominator == 1 if isinstance(number, Fraction) else number.is_integer()


def decimals(number: Number) -> int:
    """Return how many decimals write a number exactly; `MOST_DECIMALS + 1` for rounded and for longer ones."""
    if isinstance(number, Fraction):
        denominator = number.denominator
        for count in range(MOST_DECIMALS + 1):
            if not 10**count % denominator:
                return count
    return MOST_DECIMALS + 1


def digits(number: Number) -> int:
    """Count the significant digits of a number, up to `MOST_DIGITS`: 2 of 1.5 and of 150, 8 of 1/3."""
    mantissa, _ = f"{float(number):.{MOST_DIGITS - 1}e}".split("e")
    return max(len(mantissa.replace(".", "").strip("-").rstrip("0")), 1)


def candidate_answers(question: Question, trees: Sequence[tuple[Expression, float]]) -> list[CandidateAnswer]:
    """
    Group the trees of a beam by their values.

    Args:
        question ([`Question`]): The problem.
        trees (`Sequence[tuple[Expression, float]]`): Trees over its slots and their log probabilities, best first.

    Returns:
        `list[CandidateAnswer]`: by their best trees; trees without a value are in none. Rounded values, those of roots
        and of very long numbers, are one if twelve digits are.
    """
    groups: dict[Fraction | str, tuple[Number, list[str], list[Step], list[BeamTree]]] = {}
    for rank, (expression, log_probability) in enumerate(trees):
        postfix, steps = expression.to_postfix(), []
        try:
            value = evaluate_postfix(postfix, question.literals, steps)
        except ExpressionError:
            continue
        key = value if isinstance(value, Fraction) else f"{value:.12g}"
        group = groups.setdefault(key, (value, postfix, steps, []))
        group[3].append(BeamTree(expression, log_probability, rank))
    return [
        CandidateAnswer(question, value, tuple(found), tuple(postfix), tuple(steps))
        for value, postfix, steps, found in groups.values()
    ]

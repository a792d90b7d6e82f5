"""Candidate answers: the values of the trees in a beam, with trees, steps and units."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.expressions.evaluation import Number, Step, evaluate_postfix
from hf_mwp.runtime.expressions.operators import fold_postfix
from hf_mwp.utils.checked_types import checked

from .question import RATIO, REMAINDER, Question


# Maximum number of decimals of an exact number, and maximum number of significant digits to count.
MOST_DECIMALS = 4
MOST_DIGITS = 8
# Endings of length units, the only units whose product with the same unit is meaningful.
_LENGTHS = ("米", "m", "foot", "inch", "yard", "mile", "meter")


@dataclass
class Dimensions:
    """Unit of the result of an expression, and counts of operations with incompatible units."""

    unit: str | None = None  # of the result; `RATIO` means no unit, `None` an unknown unit
    clashes: int = 0  # sums and differences of amounts with different units
    shares_added: int = 0  # sums and differences of an amount and a ratio (share or multiple)
    squares: int = 0  # products of two amounts with the same unit, except lengths

    @classmethod
    def of(cls, postfix: Sequence[str], units: Sequence[str | None]) -> Dimensions:
        """Compute the units of a tree in postfix order from the units of its numbers. Constants have no known unit."""

        def unit_of_leaf(token: str) -> str | None:
            return units[int(token[1:])] if token[0] == "N" else None

        dimensions = cls()
        dimensions.unit = fold_postfix(postfix, unit_of_leaf, dimensions._apply)
        return dimensions

    def _apply(self, operator: str, left: str | None, right: str | None) -> str | None:
        if operator in "+-":
            if left is None or right is None:
                # The sum has the known unit; it is unknown if the known operand is a ratio.
                return left or right or None
            if left == right:
                return left
            if RATIO in (left, right):
                self.shares_added += 1
            else:
                self.clashes += 1
        elif left is None or right is None:
            return None
        elif operator == "*":
            if RATIO in (left, right):
                return left or right
            if left == right and not left.endswith(_LENGTHS):
                self.squares += 1
        elif operator == "/":
            if right == RATIO:
                return left
            if left == right:
                return RATIO
        return None


class BeamTree(NamedTuple):
    """Tree over number slots in a beam, with its log probability and 0-based rank."""

    expression: Expression
    log_probability: float
    rank: int


@dataclass(frozen=True)
class CandidateAnswer:
    """A value with all trees in a beam that evaluate to it."""

    question: Question  # of the problem
    value: Number
    trees: list[BeamTree]  # most probable first
    postfix: tuple[str, ...]  # tokens of the first tree
    steps: tuple[Step, ...]  # operations of the first tree

    @property
    def best(self) -> BeamTree:
        """Return the most probable tree."""
        return self.trees[0]

    @cached_property
    def log_mass(self) -> float:
        """Return the logarithm of the total probability of the trees."""
        highest = self.best.log_probability
        ratios = [math.exp(tree.log_probability - highest) for tree in self.trees]
        return highest + math.log(math.fsum(ratios))

    @cached_property
    def inner_results(self) -> tuple[Number, ...]:
        """Return the results of all operations except the last."""
        return tuple(step.result for step in self.steps[:-1])

    @cached_property
    def slots(self) -> tuple[int, ...]:
        """Return the indices of the numbers in the first tree, with repetitions."""
        return tuple(int(token[1:]) for token in self.postfix if token[0] == "N")

    @cached_property
    def unused(self) -> tuple[int, ...]:
        """Return the indices of the unused numbers."""
        indices = range(len(self.question.values))
        return tuple(index for index in indices if index not in self.slots)

    @cached_property
    def last_operator(self) -> str:
        """Return the operator of the root, or `""` if the tree is a single number."""
        return self.steps[-1].operator if self.steps else ""

    @cached_property
    def rounding(self) -> str | None:
        """Return how the answer is rounded to whole things (`"up"` or `"down"`): a quotient with a remainder, if the
        question asks for the number that suffices, or that can be had; `"remainder"` if it asks for what is left."""
        if self.last_operator != "/" or not isinstance(self.value, Fraction) or self.value < 0 or is_whole(self.value):
            return None
        return self.question.rounding

    @property
    def rounded_value(self) -> Number:
        """Return the value, rounded if the question asks for whole things."""
        if self.rounding == "up":
            return Fraction(math.ceil(self.value))
        if self.rounding == "down":
            return Fraction(math.floor(self.value))
        if self.rounding == REMAINDER:
            return self.steps[-1].left % self.steps[-1].right
        return self.value

    @cached_property
    def dimensions(self) -> Dimensions:
        """Return the units of the operations."""
        return Dimensions.of(self.postfix, self.question.units)


def is_whole(number: Number) -> bool:
    """Return whether a number is an integer."""
    return number.denominator == 1 if isinstance(number, Fraction) else number.is_integer()


def decimals(number: Number) -> int:
    """Return how many decimals write a number exactly, or `MOST_DECIMALS + 1` if `MOST_DECIMALS` are too few."""
    if isinstance(number, Fraction):
        for num_decimals in range(MOST_DECIMALS + 1):
            if 10**num_decimals % number.denominator == 0:
                return num_decimals
    return MOST_DECIMALS + 1


def digits(number: Number) -> int:
    """Count the significant digits of a number, at most `MOST_DIGITS`: 2 for 1.5 and 150, 8 for 1/3."""
    mantissa, _ = f"{float(number):.{MOST_DIGITS - 1}e}".split("e")
    return max(len(mantissa.replace(".", "").strip("-").rstrip("0")), 1)


@checked
def candidate_answers(question: Question, trees: Sequence[tuple[Expression, float]]) -> list[CandidateAnswer]:
    """Group the trees of a beam (over number slots, with log probabilities, best first) by their values, in the order
    of the best tree of each. Trees without a value are skipped, and numbers alone if the question asks for a number of
    whole things. Rounded values are equal if twelve digits are."""
    groups: dict[Fraction, CandidateAnswer] = {}
    counts_things = question.rounding not in (None, REMAINDER)
    needs_operation = counts_things and not all(expression.is_leaf for expression, _ in trees)
    for rank, (expression, log_probability) in enumerate(trees):
        # How many boats suffice is neither in the text nor a constant, which solvers guess for such questions.
        if needs_operation and expression.is_leaf:
            continue
        postfix = expression.to_postfix()
        steps = []
        try:
            value = evaluate_postfix(postfix, question.literals, steps)
        except ExpressionError:
            continue
        key = value
        if not isinstance(value, Fraction):
            key = Fraction(f"{value:.12g}")
        answer = groups.setdefault(key, CandidateAnswer(question, value, [], tuple(postfix), tuple(steps)))
        answer.trees.append(BeamTree(expression, log_probability, rank))
    return list(groups.values())

"""Search results and answers of a solver."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Self

from ..expressions import Expression, ExpressionError
from ..plausibility import RankedAnswer
from ..problems import MathWordProblem, refusal


@dataclass(frozen=True)
class Beam:
    """
    Search result for a problem.

    Args:
        trees (`tuple[tuple[Expression, float], ...]`): Complete expression trees with log probabilities, best first.
        unknown_share (`float`, *optional*): Share of unknown tokens in the text; `None` if the text was not encoded
            (see [`~problems.refusal`]).
        num_cut (`int`, *optional*, defaults to 0): Number of numbers in the text after the first `max_length` tokens.
        max_length (`int`, *optional*, defaults to 0): Maximum number of tokens.
        capped (`bool`, *optional*, defaults to `False`): Whether a limit on candidates cut the search short.
    """

    trees: tuple[tuple[Expression, float], ...] = ()
    unknown_share: float | None = None
    num_cut: int = 0
    max_length: int = 0
    capped: bool = False


@dataclass(frozen=True)
class Answer:
    """
    Answer of a solver to a problem.

    Args:
        problem ([`MathWordProblem`]): The problem.
        beam ([`Beam`]): Search result, which may contain only the best trees.
        ranked (`tuple[RankedAnswer, ...]`, *optional*): Re-ranked answers, the most plausible first; empty if no tree
            has a value. `None` without re-ranking.
    """

    problem: MathWordProblem
    beam: Beam
    ranked: tuple[RankedAnswer, ...] | None = None

    @property
    def expression(self) -> Expression | None:
        """Expression of the answer over number slots (`N0`, `N1`, ...), or `None` if no expression was found."""
        return self.ranked[0].expression if self.ranked else self.beam.trees[0][0] if self.beam.trees else None

    @property
    def log_probability(self) -> float:
        """Log probability of the expression, or minus infinity if no expression was found."""
        if self.ranked:
            return self.ranked[0].log_probability
        return self.beam.trees[0][1] if self.beam.trees else -math.inf

    @property
    def error(self) -> str | None:
        """Sentence that explains why no expression was found, or `None` if an expression was found."""
        if self.beam.trees:
            return None
        if reason := refusal(self.problem):
            return reason
        if self.beam.num_cut == len(self.problem.numbers):
            return f"All numbers are beyond the limit of {self.beam.max_length} tokens. Shorten the text."
        return "The search ended without a finished equation. Increase `max_decode_length`."

    @property
    def plausibility(self) -> float | None:
        """Probability of the answer among all answers of the beam; `None` without re-ranking or without a value."""
        return round(self.ranked[0].plausibility, 4) if self.ranked else None

    @property
    def confidence(self) -> float:
        """Confidence from 0 to 1: plausibility of the answer or, without re-ranking, probability of the expression."""
        if self.ranked is not None:
            return self.plausibility or 0.0
        return min(math.exp(self.log_probability), 1.0)

    @property
    def displaced(self) -> RankedAnswer | None:
        """The solver's first answer if re-ranking replaced it with a different answer, otherwise `None`."""
        first = min(self.ranked or (), key=lambda answer: answer.rank, default=None)
        return None if first is None or first is self.ranked[0] else first

    def without_reranking(self) -> Self:
        """Return the answer before re-ranking."""
        return replace(self, ranked=None)

    def ranking_to_dict(self) -> dict[str, Any]:
        """Return the result fields that re-ranking adds. Returns an empty dictionary without re-ranking."""
        if self.ranked is None:
            return {}
        first = self.displaced
        instead_of = first and {
            "prediction": first.expression.bind(self.problem.numbers).to_infix(),
            "value": float(first.value),
            "violations": list(first.violations),
        }
        return {"plausibility": self.plausibility, "instead_of": instead_of}


def read_trees(
    trees: Iterable[tuple[Sequence[int], float]], decode: Callable[[list[int]], Expression]
) -> tuple[tuple[Expression, float], ...]:
    """
    Decode the prefix ids of trees, best first, to expressions over number slots with their log probabilities. Negative
    ids are padding. Incomplete trees, whose log probability is minus infinity, are left out.
    """
    found = []
    for ids, log_probability in trees:
        with suppress(ExpressionError):
            if math.isfinite(log_probability):
                found.append((decode([symbol for symbol in ids if symbol >= 0]), float(log_probability)))
    return tuple(found)

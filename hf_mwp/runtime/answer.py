"""Answers of a solver."""

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
    Search result of a problem.

    Args:
        trees (`tuple[tuple[Expression, float], ...]`): The finished ones and their log probabilities, best first.
        unknown_share (`float`, *optional*): Share of the text's tokens that the vocabulary lacks; `None` if nothing
            was encoded ([`~problems.refusal`]).
        num_cut (`int`), max_length (`int`): Numbers of the text that lie beyond so many tokens.
        capped (`bool`): Whether a limit on what is tried cut the search short.
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
        beam ([`Beam`]): Search result, as far as it was kept.
        ranked (`tuple[RankedAnswer, ...]`, *optional*): With a re-ranker its answers, the most plausible one first;
            empty if no tree has a value.
    """

    problem: MathWordProblem
    beam: Beam
    ranked: tuple[RankedAnswer, ...] | None = None

    @property
    def expression(self) -> Expression | None:
        """Tree of the answer over number slots; `None` if none was found."""
        return self.ranked[0].expression if self.ranked else self.beam.trees[0][0] if self.beam.trees else None

    @property
    def log_probability(self) -> float:
        """Log probability of the tree; minus infinity if there is none."""
        if self.ranked:
            return self.ranked[0].log_probability
        return self.beam.trees[0][1] if self.beam.trees else -math.inf

    @property
    def error(self) -> str | None:
        """Reason, in a sentence, why there is no tree; `None` if there is one."""
        if self.beam.trees:
            return None
        if reason := refusal(self.problem):
            return reason
        if self.beam.num_cut == len(self.problem.numbers):
            return f"All numbers lie beyond {self.beam.max_length} tokens, where the text is cut: shorten it."
        return "The search ended without a finished equation; allow a longer one."

    @property
    def plausibility(self) -> float | None:
        """Probability of the answer among those of the beam after re-ranking; `None` without re-ranking or values."""
        return round(self.ranked[0].plausibility, 4) if self.ranked else None

    @property
    def confidence(self) -> float:
        """Confidence from 0 to 1: the answer's plausibility or, without re-ranking, the probability of its tree."""
        if self.ranked is not None:
            return self.plausibility or 0.0
        return min(math.exp(self.log_probability), 1.0)

    @property
    def displaced(self) -> RankedAnswer | None:
        """The solver's own first answer, if re-ranking put another one before it."""
        first = min(self.ranked or (), key=lambda answer: answer.rank, default=None)
        return None if first is None or first is self.ranked[0] else first

    def without_reranking(self) -> Self:
        """Return the solver's own answer."""
        return replace(self, ranked=None)

    def ranking_to_dict(self) -> dict[str, Any]:
        """Return the fields that re-ranking adds to the record; empty without re-ranking."""
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
    Return expressions over slots and their log probabilities, from prefix ids of one problem's trees, best first.
    Negative ids are padding; a tree that was not finished has a log probability of minus infinity, and is left out.
    """
    found = []
    for ids, log_probability in trees:
        with suppress(ExpressionError):
            if math.isfinite(log_probability):
                found.append((decode([symbol for symbol in ids if symbol >= 0]), float(log_probability)))
    return tuple(found)

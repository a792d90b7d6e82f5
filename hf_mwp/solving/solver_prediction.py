"""Answers of a solver and their scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..expressions import Expression
from ..metrics import PredictionScore, accuracy_report, calibration_report, score_prediction
from ..problems import MathWordProblem, refusal
from .beams import Beam, read_trees
from .plausibility import RankedAnswer


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor


@dataclass(frozen=True)
class SolverPrediction:
    """
    Answer of a solver to a problem.

    Args:
        problem ([`MathWordProblem`]): The problem.
        beam ([`Beam`]): What the search found, as far as it was kept.
        ranked (`tuple[RankedAnswer, ...]`, *optional*): With a re-ranker its answers, the most plausible one first;
            empty if no tree has a value.
        answer_match (`str`, *optional*, defaults to `"annotated"`): See [`metrics.answers_match`].
    """

    problem: MathWordProblem
    beam: Beam
    ranked: tuple[RankedAnswer, ...] | None = None
    answer_match: str = "annotated"

    @property
    def expression(self) -> Expression | None:
        """The tree that answers, over number slots; `None` if none was found."""
        return self.ranked[0].expression if self.ranked else self.beam.trees[0][0] if self.beam.trees else None

    @property
    def log_probability(self) -> float:
        """Log probability of the tree; minus infinity if there is none."""
        if self.ranked:
            return self.ranked[0].log_probability
        return self.beam.trees[0][1] if self.beam.trees else -math.inf

    @cached_property
    def score(self) -> PredictionScore:
        """Return whether it is right, and if not, why."""
        return score_prediction(self.problem, self.expression, answer_match=self.answer_match)

    @property
    def is_right(self) -> bool | None:
        """Whether the answer is right; `None` if the problem has none."""
        return self.score.answer_correct

    @property
    def kind(self) -> str | None:
        """Kind of the problem, if its data set tells kinds apart."""
        return self.problem.kind

    @property
    def error(self) -> str | None:
        """Why there is no tree, in a sentence; `None` if there is one."""
        if self.beam.trees:
            return None
        if reason := refusal(self.problem):
            return reason
        if self.beam.num_cut == len(self.problem.numbers):
            return f"All numbers lie beyond {self.beam.max_length} tokens, where the text is cut: shorten it."
        return "The search ended without a finished equation; allow a longer one."

    @property
    def plausibility(self) -> float | None:
        """Share of the answer among those of the beam; `None` if they were not ranked, or none has a value."""
        return round(self.ranked[0].plausibility, 4) if self.ranked else None

    @property
    def confidence(self) -> float:
        """From 0 to 1 how sure the answer is: its plausibility or, if they were not ranked, its tree's probability."""
        if self.ranked is not None:
            return self.plausibility or 0.0
        return min(math.exp(self.log_probability), 1.0)

    @property
    def displaced(self) -> RankedAnswer | None:
        """Return what the solver itself holds for likelier, if re-ranking put another answer first."""
        first = min(self.ranked or (), key=lambda answer: answer.rank, default=None)
        return None if first is None or first is self.ranked[0] else first

    def without_reranking(self) -> SolverPrediction:
        """Return what the solver itself answers."""
        return replace(self, ranked=None)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready record: problem, prediction, verdict and reason."""
        expression, score = self.expression, self.score
        return {
            "id": self.problem.id,
            "text": self.problem.text,
            "equation": self.problem.equation,
            "answer": self.problem.answer,
            "prediction": "" if expression is None else expression.bind(self.problem.numbers).to_infix(),
            "prefix": [] if expression is None else expression.to_prefix(),
            "value": None if score.value is None else float(score.value),
            "log_probability": self.log_probability if math.isfinite(self.log_probability) else None,
            "answer_correct": score.answer_correct,
            "equation_correct": score.equation_correct,
            "complexity": score.level,
            "reason": score.reason,
            "detail": score.detail,
            **self.ranking_to_dict(),
        }

    def ranking_to_dict(self) -> dict[str, Any]:
        """Return what re-ranking adds to the record; empty without."""
        if self.ranked is None:
            return {}
        first = self.displaced
        instead_of = first and {
            "prediction": first.expression.bind(self.problem.numbers).to_infix(),
            "value": float(first.value),
            "violations": list(first.violations),
        }
        return {"plausibility": self.plausibility, "instead_of": instead_of}


def read_predictions(
    rows: Sequence[Mapping[str, Any]],
    sequences: Sequence[Sequence[int]],
    log_probabilities: Sequence[float],
    processor: MwpProcessor,
    answer_match: str = "annotated",
) -> list[SolverPrediction]:
    """
    Read the best tree of each row ([`read_trees`]); rows that are no problem to solve ([`~problems.refusal`]), or have
    all `number_positions` cut off, have none.
    """
    predictions = []
    for row, *tree in zip(rows, sequences, log_probabilities, strict=True):
        problem = processor.problem(row)
        is_cut = max(row.get("number_positions") or [0]) < 0
        trees = () if is_cut or refusal(problem) is not None else read_trees([tree], processor)
        predictions.append(SolverPrediction(problem, Beam(trees), answer_match=answer_match))
    return predictions


def measure_calibration(predictions: Sequence[SolverPrediction]) -> dict[str, Any] | None:
    """[`metrics.calibration_report`] of the predictions that can be judged; `None` if there are none."""
    judged = [each for each in predictions if each.is_right is not None]
    if not judged:
        return None
    return calibration_report([each.confidence for each in judged], [each.is_right for each in judged])


def figure_names(rows: Sequence[Mapping[str, Any]], processor: MwpProcessor, answer_match: str) -> set[str]:
    """Return the keys of [`metrics.accuracy_report`] for these rows, whatever is predicted."""
    problems = processor.problems(rows)
    return set(accuracy_report([score_prediction(problem, None, answer_match=answer_match) for problem in problems]))

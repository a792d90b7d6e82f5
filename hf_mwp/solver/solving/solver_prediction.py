"""The class for predictions of a solver with their scores, and functions that create and evaluate predictions."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from hf_mwp.runtime.answer import Answer, Beam, read_trees
from hf_mwp.runtime.problems import refusal
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics import (
    FAILURE_REASONS,
    PredictionScore,
    accuracy_report,
    calibration_report,
    score_prediction,
)


@dataclass(frozen=True)
class SolverPrediction(Answer):
    """An [`~runtime.answer.Answer`] to a problem that can be scored."""

    answer_match: str = "annotated"  # target value, see [`metrics.answers_match`]

    @cached_property
    def score(self) -> PredictionScore:
        """Score of the prediction, with the reason for a failure."""
        rounded = None
        if self.ranked and self.ranked[0].rounding is not None:
            rounded = self.ranked[0].value
        return score_prediction(self.problem, self.expression, answer_match=self.answer_match, rounded=rounded)

    @property
    def is_right(self) -> bool | None:
        """Correctness of the answer, `None` if the problem has no answer."""
        return self.score.answer_correct

    @property
    def failure(self) -> tuple[str, str] | None:
        """Reason for the failure and its description, or `None` if the prediction is correct."""
        reason = self.score.reason
        return None if reason == "correct" else (reason, FAILURE_REASONS[reason])

    @property
    def kind(self) -> str:
        """Category of the problem, or `""` if the dataset has no categories."""
        return self.problem.kind

    def to_dict(self) -> dict[str, Any]:
        """Return the problem, prediction, score and reason for a failure as a JSON-serialisable dictionary."""
        problem = self.problem
        score = self.score
        equation = ""
        prefix = []
        if self.expression is not None:
            equation = self.expression.bind(problem.numbers).to_infix()
            prefix = self.expression.to_prefix()
        row = {
            "id": problem.id,
            "text": problem.text,
            "equation": problem.equation,
            "answer": problem.answer,
            "prediction": equation,
            "prefix": prefix,
            "value": None if score.value is None else float(score.value),
            "log_probability": self.log_probability if math.isfinite(self.log_probability) else None,
            "answer_correct": score.answer_correct,
            "equation_correct": score.equation_correct,
            "complexity": score.level,
            "reason": score.reason,
            "detail": score.detail,
        }
        if self.ranked is not None:
            row["plausibility"] = self.plausibility
            row["instead_of"] = self.instead_of("prediction", "value")
        return row


def read_predictions(
    rows: Sequence[Mapping[str, Any]],
    sequences: Sequence[Sequence[int]],
    log_probabilities: Sequence[float],
    processor: MwpProcessor,
    answer_match: str = "annotated",
) -> list[SolverPrediction]:
    """Return a prediction per row: its tree, or none if the problem is refused or all its numbers are cut off."""
    predictions = []
    for row, *tree in zip(rows, sequences, log_probabilities, strict=True):
        problem = processor.problem(row)
        number_positions = row.get("number_positions")
        is_cut = number_positions is not None and max(number_positions, default=-1) < 0
        trees = ()
        if not is_cut and refusal(problem) is None:
            trees = read_trees([tree], processor.decode)
        predictions.append(SolverPrediction(problem, Beam(trees), answer_match=answer_match))
    return predictions


def measure_calibration(predictions: Sequence[SolverPrediction]) -> dict[str, Any] | None:
    """Return [`metrics.calibration_report`] of the predictions with a known answer, or `None` if there are none."""
    confidences = []
    correct = []
    for prediction in predictions:
        if prediction.is_right is not None:
            confidences.append(prediction.confidence)
            correct.append(prediction.is_right)
    if not correct:
        return None
    return calibration_report(confidences, correct)


def figure_names(rows: Sequence[Mapping[str, Any]], processor: MwpProcessor, answer_match: str) -> set[str]:
    """Return the keys of [`metrics.accuracy_report`] for these rows, which do not depend on the predictions."""
    problems = processor.problems(rows)
    scores = [score_prediction(problem, None, answer_match=answer_match) for problem in problems]
    return set(accuracy_report(scores))

"""From decoded symbols to checked answers."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..data.batches.mwp_processor import MwpProcessor
from ..data.reading.schema import problem_from_row
from ..expressions import Expression, ExpressionError
from ..metrics import PredictionScore, accuracy_report, score_prediction
from ..problems import MathWordProblem, refusal


@dataclass(frozen=True)
class SolverPrediction:
    """
    What a solver answered to one problem, and how it did.

    Attributes:
        problem ([`MathWordProblem`]): The problem.
        expression ([`Expression`], *optional*): Its tree over number slots; `None` if decoding found none.
        log_probability (`float`): Of the tree.
        score ([`PredictionScore`]): Whether it is right, and if not, why.
    """

    problem: MathWordProblem
    expression: Expression | None
    log_probability: float
    score: PredictionScore

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready record: problem, prediction, verdict and reason."""
        expression, value = self.expression, self.score.value
        return {
            "id": self.problem.id,
            "text": self.problem.text,
            "equation": self.problem.equation,
            "answer": self.problem.answer,
            "prediction": "" if expression is None else expression.bind(self.problem.numbers).to_infix(),
            "prefix": [] if expression is None else expression.to_prefix(),
            "value": None if value is None else float(value),
            "log_probability": self.log_probability if math.isfinite(self.log_probability) else None,
            "answer_correct": self.score.answer_correct,
            "equation_correct": self.score.equation_correct,
            "complexity": self.score.level,
            "reason": self.score.reason,
            "detail": self.score.detail,
        }


def read_predictions(
    rows: Sequence[dict[str, Any]],
    sequences: Sequence[Sequence[int]],
    log_probabilities: Sequence[float],
    processor: MwpProcessor,
    rule: str = "annotated",
) -> list[SolverPrediction]:
    """
    Decodes and checks one prediction for each row; what is no problem to solve ([`~problems.refusal`]) has none.

    Args:
        rows (`Sequence[dict]`): Raw columns of the problems.
        sequences (`Sequence[Sequence[int]]`): Prefix ids of each problem's best tree; negative ids are padding.
        log_probabilities (`Sequence[float]`): Of these trees.
        processor ([`MwpProcessor`]): Reads the ids.
        rule (`str`, *optional*, defaults to `"annotated"`): What is a right answer, see [`metrics.answers_match`].
    """
    predictions = []
    for row, ids, log_probability in zip(rows, sequences, log_probabilities, strict=True):
        problem = problem_from_row(row, numerals=processor.numerals)
        expression = None
        if refusal(problem) is None:
            with contextlib.suppress(ExpressionError):
                expression = processor.decode(ids)
        score = score_prediction(problem, expression, rule=rule)
        predictions.append(SolverPrediction(problem, expression, float(log_probability), score))
    return predictions


def summarise(predictions: Sequence[SolverPrediction]) -> dict[str, float]:
    """Accuracies, overall and per level of complexity; see [`metrics.accuracy_report`]."""
    return accuracy_report([prediction.score for prediction in predictions])


def figure_names(rows: Sequence[dict[str, Any]], processor: MwpProcessor, rule: str) -> set[str]:
    """What [`summarise`] tells of these rows, whatever is predicted."""
    problems = [problem_from_row(row, numerals=processor.numerals) for row in rows]
    return set(accuracy_report([score_prediction(problem, None, rule=rule) for problem in problems]))

"""Predictions as the pipeline and `hf-mwp solve` tell them."""

from __future__ import annotations

import math
from typing import Any

from ..expressions import Expression, ExpressionError
from ..problems import MathWordProblem
from ..usage_error import UsageError
from .beams import Beam
from .solver_prediction import SolverPrediction
from .unknown_share import WARN_ABOVE


def answer_records(
    prediction: SolverPrediction, top_k: int = 1, confidence_threshold: float | None = None
) -> list[dict[str, Any]]:
    """
    The best `top_k` answers to a problem, as [`MathWordProblemPipeline`] describes them. Below `confidence_threshold`,
    a probability or, of ranked answers, a plausibility, there is no answer; the prediction then has to have all beams.
    """
    problem, beam = prediction.problem, prediction.beam
    if beam.unknown_share is None:
        return [_no_answer(problem, prediction.error)]
    # The candidates of an unsure answer are all that was found.
    count = top_k if confidence_threshold is None else None
    if prediction.ranked:
        records = [
            _described(answer.expression, problem, answer.log_probability)
            | {"plausibility": round(answer.plausibility, 4), "violations": list(answer.violations)}
            for answer in prediction.ranked[:count]
        ]
        if first := prediction.displaced:
            records[0]["instead_of"] = {
                "equation": first.expression.bind(problem.numbers).to_infix(),
                "answer": float(first.value),
                "violations": list(first.violations),
            }
    else:
        records = [_described(expression, problem, score) for expression, score in beam.trees[:count]]
    if not records:
        records = [_no_answer(problem, prediction.error)]
    elif confidence_threshold is not None and _certainty(records[0]) < confidence_threshold:
        records = [_unsure(problem, records, confidence_threshold)]
    known: dict[str, Any] = {"unknown_share": beam.unknown_share}
    if warning := _warning(problem, beam):
        known["warning"] = warning
    return [record | known for record in records[:top_k]]


def check_confidence_threshold(value: float) -> None:
    """Raises `UsageError` if a value is no probability."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise UsageError(f"`confidence_threshold` is a probability, a number from 0 to 1, not {value!r}.")


def _described(expression: Expression, problem: MathWordProblem, log_probability: float) -> dict[str, Any]:
    record = {
        "answer": None,
        "value": None,
        "equation": expression.bind(problem.numbers).to_infix(),
        "prefix": expression.to_prefix(),
        "numbers": list(problem.numbers),
        "score": math.exp(log_probability),
    }
    try:
        value = expression.evaluate(problem.numbers)
    except ExpressionError as error:
        return record | {"error": f"The equation has no value: {error}."}
    return record | {"answer": float(value), "value": str(value)}


def _no_answer(problem: MathWordProblem, error: str | None) -> dict[str, Any]:
    empty = dict.fromkeys(("answer", "value", "equation", "prefix"))
    numbers = [] if problem.is_too_long else list(problem.numbers)
    return empty | {"numbers": numbers, "score": 0.0, "error": error}


def _certainty(record: dict[str, Any]) -> float:
    return record.get("plausibility", record["score"])


def _unsure(problem: MathWordProblem, records: list[dict[str, Any]], confidence_threshold: float) -> dict[str, Any]:
    best, names = records[0], ("equation", "answer", "value", "score", "plausibility")
    kind = "answer has the plausibility" if "plausibility" in best else "equation has the probability"
    message = f"Unsure: the best {kind} {_certainty(best):.3g}, below {confidence_threshold:g}."
    candidates = [{name: record[name] for name in names if name in record} for record in records]
    return _no_answer(problem, message) | {"score": best["score"], "status": "unsure", "candidates": candidates}


def _warning(problem: MathWordProblem, beam: Beam) -> str:
    warnings = []
    if beam.num_cut:
        warnings.append(
            f"The text was cut at {beam.max_length} tokens; {beam.num_cut} of its {len(problem.numbers)} numbers lie "
            "beyond and could not be used."
        )
    if beam.unknown_share > WARN_ABOVE:
        warnings.append(
            f"{beam.unknown_share:.0%} of the text's tokens are not in the solver's vocabulary: it may be in a "
            "language that the solver was not trained on, and the answer a guess."
        )
    return " ".join(warnings)

"""Result dictionaries of the pipeline and of `hf-mwp solve`."""

from __future__ import annotations

import math
from typing import Any

from ..expressions import Expression, ExpressionError
from ..problems import MathWordProblem
from .answer import Answer


# Share of unknown tokens above which a result has a warning. Test problems of seven datasets in the solver's language
# have at most 0.17 (HMWP); 97 % or more of the Chinese problems exceed 0.2 with MiniLM's vocabulary.
WARN_ABOVE = 0.2


def answer_records(answer: Answer, top_k: int = 1, confidence_threshold: float | None = None) -> list[dict[str, Any]]:
    """
    Return the best `top_k` results for a problem as dictionaries (fields: see [`MathWordProblemPipeline`]). If the
    confidence is below `confidence_threshold`, the only result is `"unsure"`. With a threshold, `answer` must contain
    all beams, which become the candidates.
    """
    problem, beam = answer.problem, answer.beam
    if beam.unknown_share is None:
        return [_no_answer(problem, answer.error)]
    # The candidates of an unsure result are all expressions that were found.
    count = top_k if confidence_threshold is None else None
    if answer.ranked:
        records = [
            _described(ranked.expression, problem, ranked.log_probability)
            | {"plausibility": round(ranked.plausibility, 4), "violations": list(ranked.violations)}
            for ranked in answer.ranked[:count]
        ]
        if first := answer.displaced:
            equation = first.expression.bind(problem.numbers).to_infix()
            violations = list(first.violations)
            records[0]["instead_of"] = {"equation": equation, "answer": float(first.value), "violations": violations}
    else:
        records = [_described(expression, problem, score) for expression, score in beam.trees[:count]]
    if not records:
        records = [_no_answer(problem, answer.error)]
    elif confidence_threshold is not None:
        records = _if_sure(problem, records, confidence_threshold)
    known: dict[str, Any] = {"unknown_share": beam.unknown_share}
    warnings = []
    if beam.num_cut:
        warnings.append(
            f"The text was truncated to {beam.max_length} tokens; {beam.num_cut} of its {len(problem.numbers)} "
            "numbers were cut off and could not be used."
        )
    if beam.unknown_share > WARN_ABOVE:
        warnings.append(
            f"{beam.unknown_share:.0%} of the text's tokens are not in the solver's vocabulary. The text may be in a "
            "language that the solver was not trained on, and the answer may be a guess."
        )
    if beam.capped:
        known["capped"] = True
        warnings.append("The search reached the decoder's candidate limit and may have missed a likelier equation.")
    if warnings:
        known["warning"] = " ".join(warnings)
    return [record | known for record in records[:top_k]]


def check_search(confidence_threshold: float | None, **counts: int | None) -> None:
    """Raise `ValueError` if the threshold is no probability, or a count is below 1. `None` is accepted."""
    for name, value in counts.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise ValueError(f"`{name}` must be an integer of at least 1, not {value!r}.")
    value = confidence_threshold
    if value is not None and not (type(value) in (int, float) and 0 <= value <= 1):
        raise ValueError(f"`confidence_threshold` must be a number between 0 and 1, not {value!r}.")


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


def _if_sure(problem: MathWordProblem, records: list[dict[str, Any]], threshold: float) -> list[dict[str, Any]]:
    """Return the results or, if the confidence of the first is below the threshold, one unsure result with them."""
    best, names = records[0], ("equation", "answer", "value", "score", "plausibility")
    certainty = best.get("plausibility", best["score"])
    if certainty >= threshold:
        return records
    kind = "answer has the plausibility" if "plausibility" in best else "equation has the probability"
    unsure = _no_answer(problem, f"Unsure: the best {kind} {certainty:.4g}, below {threshold:g}.")
    candidates = [{name: record[name] for name in names if name in record} for record in records]
    return [unsure | {"score": best["score"], "status": "unsure", "candidates": candidates}]

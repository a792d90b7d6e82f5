"""Search results and answers of a solver, and the result dictionaries of the pipeline and of `hf-mwp solve`."""

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from numbers import Integral, Real
from os import PathLike
from typing import Any, Self

from hf_mwp.utils.language import LATIN_WORD, language_of
from hf_mwp.utils.unknown_tokens import PROBLEM_LIMIT, unknown_tokens_warning

from .expressions import Expression, ExpressionError
from .percent_answers import percent_answer
from .plausibility import RankedAnswer
from .plausibility.question import REMAINDER
from .problems import MathWordProblem, refusal


@dataclass(frozen=True)
class Beam:
    """Search result for a problem."""

    trees: tuple[tuple[Expression, float], ...] = ()  # complete, with log probabilities, best first
    unknown_share: float | None = None  # of tokens in the text; `None` if it was not encoded ([`~problems.refusal`])
    num_cut: int = 0  # numbers in the text after the first `max_length` tokens
    max_length: int = 0
    capped: bool = False  # whether a limit on candidates cut the search short
    fault: str | None = None  # sentence on scores that are NaN or infinite; there are no trees then


@dataclass(frozen=True)
class Answer:
    """Answer of a solver to a problem."""

    problem: MathWordProblem
    beam: Beam  # may contain only the best trees
    ranked: tuple[RankedAnswer, ...] | None = None  # if re-ranked: those with a value, most plausible first

    @property
    def expression(self) -> Expression | None:
        """Expression of the answer over number slots (`N0`, `N1`, ...), or `None` if no expression was found."""
        return self._best[0]

    @property
    def log_probability(self) -> float:
        """Log probability of the expression, or minus infinity if no expression was found."""
        return self._best[1]

    @property
    def _best(self) -> tuple[Expression | None, float]:
        """Expression of the answer with its log probability."""
        if self.ranked:
            return self.ranked[0].expression, self.ranked[0].log_probability
        if self.beam.trees:
            return self.beam.trees[0]
        return None, -math.inf

    @property
    def error(self) -> str | None:
        """Sentence that explains why no expression was found, or `None` if an expression was found."""
        if self.beam.trees:
            return None
        reason = refusal(self.problem)
        if reason is not None:
            return reason
        if self.beam.fault is not None:
            return self.beam.fault
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
        if not self.ranked:
            return None
        first = min(self.ranked, key=lambda answer: answer.rank)
        return None if first is self.ranked[0] else first

    def without_reranking(self) -> Self:
        """Return the answer before re-ranking."""
        return replace(self, ranked=None)

    def instead_of(self, equation: str, value: str) -> dict[str, Any] | None:
        """Return the equation and value of the displaced answer, with these keys, and its violations."""
        first = self.displaced
        if first is None:
            return None
        return {
            equation: first.expression.bind(self.problem.numbers).to_infix(),
            value: float(first.value),
            "violations": list(first.violations),
        }


def rounding_remark(rounding: str) -> str:
    """Return a remark for readers on an answer that was rounded (`rounded` of a result)."""
    return "remainder of the quotient" if rounding == REMAINDER else f"rounded {rounding}"


def not_finite(source: str | PathLike, weights: Sequence[str]) -> str:
    """Return the sentence on a search whose scores are NaN or infinite, with the folder or repository of the solver
    (which may be empty) and the names of its weights with such values, if any."""
    solver = f"The solver {source}" if str(source) else "The solver"
    if not weights:
        return (
            f"{solver} computed scores that are NaN or infinite from finite weights, which are too large. Load it in "
            "single precision, or train it again with a lower learning rate."
        )
    more = f" and {len(weights) - 1} more" if len(weights) > 1 else ""
    return (
        f"{solver} computed scores that are NaN or infinite, because such values are in its weights {weights[0]}"
        f"{more}. Download it again, or train it again with a lower learning rate."
    )


def read_trees(
    trees: Iterable[tuple[Sequence[int], float]], decode: Callable[[list[int]], Expression]
) -> tuple[tuple[Expression, float], ...]:
    """Decode prefix ids (negative ids are padding), without incomplete trees, whose log probability is -inf."""
    decoded = []
    for ids, log_probability in trees:
        if not math.isfinite(log_probability):
            continue
        with suppress(ExpressionError):
            expression = decode([symbol for symbol in ids if symbol >= 0])
            decoded.append((expression, float(log_probability)))
    return tuple(decoded)


def answer_records(answer: Answer, top_k: int = 1, confidence_threshold: float | None = None) -> list[dict[str, Any]]:
    """Return the best `top_k` results of [`MathWordProblemPipeline`] for a problem, or one `"unsure"` result if the
    confidence is below `confidence_threshold`. Its candidates are all expressions in `answer`."""
    problem = answer.problem
    beam = answer.beam
    if beam.unknown_share is None:
        return [_no_answer(problem, answer.error)]
    # Candidates of an unsure result are all expressions.
    limit = top_k if confidence_threshold is None else None
    records = _candidate_records(answer, limit)
    if not records:
        records = [_no_answer(problem, answer.error)]
    elif confidence_threshold is not None:
        records = _if_sure(problem, records, confidence_threshold)
    details = {"unknown_share": beam.unknown_share}
    if beam.capped:
        details["capped"] = True
    warnings = _warnings(problem, beam)
    if warnings:
        details |= {"warning": " ".join(warnings), "warnings": warnings}
    return [record | details for record in records[:top_k]]


def _candidate_records(answer: Answer, limit: int | None) -> list[dict[str, Any]]:
    """Return the results for the first `limit` expressions of an answer, best first."""
    if not answer.ranked:
        return [_described(expression, answer.problem, score) for expression, score in answer.beam.trees[:limit]]
    records = []
    for ranked in answer.ranked[:limit]:
        record = _described(ranked.expression, answer.problem, ranked.log_probability)
        record |= {"plausibility": round(ranked.plausibility, 4), "violations": list(ranked.violations)}
        if ranked.rounding is not None:
            record |= {"quotient": record["value"], "rounded": ranked.rounding}
            record |= {"answer": float(ranked.value), "value": str(ranked.value)}
        records.append(record)
    if answer.displaced:
        records[0]["instead_of"] = answer.instead_of("equation", "answer")
    return records


def _warnings(problem: MathWordProblem, beam: Beam) -> list[str]:
    """Return the sentences on a text that was not read completely, or on a search that was cut short."""
    warnings = []
    if beam.num_cut:
        warnings.append(
            f"The text was truncated to {beam.max_length} tokens; {beam.num_cut} of its {len(problem.numbers)} "
            "numbers were cut off and could not be used."
        )
    advice = "The text may be in a language that the solver was not trained on, and the answer may be a guess."
    unreadable = unknown_tokens_warning(
        beam.unknown_share, PROBLEM_LIMIT, "the text's tokens", "the solver's vocabulary", advice
    )
    is_english = problem.language == "zh" and language_of(problem.text) == "en"
    if unreadable is not None:
        warnings.append(unreadable)
    elif is_english and len(LATIN_WORD.findall(problem.text)) >= 3:
        # Chinese vocabularies contain Latin letters, so few tokens of an English text are unknown.
        warnings.append(
            "The solver was trained on Chinese problems, and the text is not Chinese. The answer may be a guess."
        )
    if beam.capped:
        warnings.append("The search reached the decoder's candidate limit and may have missed a likelier equation.")
    if problem.masked.notes:
        warnings.append(f"Check the numbers: {'; '.join(problem.masked.notes)}.")
    return warnings


def check_search(
    confidence_threshold: float | None = None, score_margin: float | None = None, **counts: int | None
) -> None:
    """Raise `ValueError` if the threshold is no probability, the margin is not positive, or a count is below 1. `None`
    is accepted."""
    for name, value in counts.items():
        if value is not None and (not isinstance(value, Integral) or value < 1):
            raise ValueError(f"`{name}` must be an integer of at least 1, not {value!r}.")
    value = confidence_threshold
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1):
        raise ValueError(f"`confidence_threshold` must be a number between 0 and 1, not {value!r}.")
    value = score_margin
    if value is not None and (isinstance(value, bool) or not isinstance(value, Real) or not value > 0):
        raise ValueError(f"`score_margin` must be a number above 0, not {value!r}.")


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
    record |= {"answer": float(value), "value": str(value)}
    percentage = percent_answer(expression, problem)
    if percentage is not None:
        record["percent"] = percentage
    return record


def _no_answer(problem: MathWordProblem, error: str | None) -> dict[str, Any]:
    empty = dict.fromkeys(("answer", "value", "equation", "prefix"))
    numbers = [] if problem.is_too_long else list(problem.numbers)
    return empty | {"numbers": numbers, "score": 0.0, "error": error}


def _if_sure(problem: MathWordProblem, records: list[dict[str, Any]], threshold: float) -> list[dict[str, Any]]:
    """Return the results or, if the confidence of the first is below the threshold, one unsure result with them."""
    best = records[0]
    confidence = best.get("plausibility", best["score"])
    if confidence >= threshold:
        return records
    subject = "answer has the plausibility" if "plausibility" in best else "equation has the probability"
    unsure = _no_answer(problem, f"Unsure: the best {subject} {confidence:.4g}, below {threshold:g}.")
    names = ["equation", "answer", "value", "score"]
    if "plausibility" in best:
        names.append("plausibility")
    candidates = []
    for record in records:
        candidates.append({name: record[name] for name in names})
    return [unsure | {"score": best["score"], "status": "unsure", "candidates": candidates}]

"""Scores of single predictions, accuracies of problems by level of complexity, and their cells in tables."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean
from typing import Any

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError, refusal
from hf_mwp.utils.checked_types import checked

from .matching import answers_match, equations_match, failure_reason


# Description of math word problems for model cards. `metrics` maps a table column to two keys of a report: the metric
# and the number of examples over which the metric is averaged.
MATH_WORD_PROBLEMS: Mapping[str, Any] = {
    "tags": ["hf_mwp", "math-word-problems"],
    "metrics": {"answers": ("answer_accuracy", "num_problems"), "equations": ("equation_accuracy", "num_equations")},
}


LEVELS = ("low", "medium", "high")
# Beginnings of the names of metrics that are shares. For MNLI, a suffix follows.
SHARES = ("accuracy", "answer_accuracy", "f1", "matthews", "spearman")


@dataclass(frozen=True)
class PredictionScore:
    """
    Score of a prediction.

    Attributes:
        answer_correct (`bool` or `None`): Whether the value is correct, or `None` if there is no reference answer.
        equation_correct (`bool`), canonical_correct (`bool`): Whether the predicted equation equals the target token
            for token, and in canonical form. `False` if there is no target equation.
        value (`Fraction`, `float` or `None`): Value of the prediction, or `None` if it has no value.
        reason (`str`): `"correct"`, or a key of `FAILURE_REASONS`.
        level (`str` or `None`): Complexity of the target equation: `"low"`, `"medium"` or `"high"`.
        detail (`str`): Message of the error if the prediction cannot be evaluated, else empty.
    """

    answer_correct: bool | None
    equation_correct: bool
    canonical_correct: bool
    value: Fraction | float | None
    reason: str
    level: str | None
    detail: str = ""


@checked
def score_prediction(
    problem: MathWordProblem,
    prediction: Expression | None,
    answer_match: str = "annotated",
    tolerance: float = 1e-4,
    rounded: Fraction | float | None = None,
) -> PredictionScore:
    """
    Score the predicted equation of a problem.

    Args:
        problem ([`MathWordProblem`]): Problem with `answer`, `equation`, or both. If the answer is missing, the
            reference is the value of the equation, also with `"annotated"`.
        prediction ([`Expression`] or `None`): Predicted tree with number slots (`N0`), or `None` if there is no
            prediction.
        answer_match (`str`, *optional*), tolerance (`float`, *optional*, defaults to 1e-4): See [`answers_match`].
        rounded (`Fraction`, `int` or `float`, *optional*): Answer to compare instead of the value of the prediction,
            which was rounded to it.
    """
    # Find the target equation and the reference answer.
    target = None
    with suppress(ExpressionError, ProblemError):
        target = problem.expression
    level = None if target is None else target.complexity()
    reference = None
    if answer_match != "equation_value" and problem.answer_value is not None:
        reference = problem.answer
    elif target is not None:
        with suppress(ExpressionError):
            reference = target.evaluate(problem.numbers)
    if prediction is None:
        if reference is None:
            return PredictionScore(None, False, False, None, "unlabelled", level)
        reason = "no_prediction" if refusal(problem) is None else "no_numbers"
        return PredictionScore(False, False, False, None, reason, level)

    same = canonical = False
    value = None
    detail = ""
    try:
        bound = prediction.bind(problem.numbers)
        if target is not None:
            bound_target = target.bind(problem.numbers)
            same = equations_match(bound, bound_target)
            canonical = equations_match(bound, bound_target, canonical=True)
        value = prediction.evaluate(problem.numbers) if rounded is None else rounded
    except ExpressionError as error:
        detail = str(error)
    if reference is None:
        return PredictionScore(None, same, canonical, value, "unlabelled", level, detail)
    correct = answers_match(value, reference, answer_match=answer_match, tolerance=tolerance)
    if correct:
        reason = "correct"
    elif same or canonical:
        reason = "label_conflict"
    elif detail:
        reason = "evaluation_error"
    elif target is None:
        reason = "wrong_value"
    else:
        reason = failure_reason(prediction, target)
    return PredictionScore(correct, same, canonical, value, reason, level, detail)


@checked
def accuracy_report(scores: Sequence[PredictionScore]) -> dict[str, float]:
    """
    Compute accuracies (0 to 1) and the numbers of problems they refer to.

    Returns:
        `dict[str, float]`: `answer_accuracy` is computed over the `num_problems` problems with a reference answer
        (if `answer_match="equation_value"`, the problems whose target equation has a value).
        `answer_accuracy_low`, `num_problems_low` and so on refer to one level of complexity. `equation_accuracy` and
        `canonical_equation_accuracy` are computed over the `num_equations` problems with a valid target equation.
        `num_unjudged` is the number of problems without a reference answer, if there are any. Accuracies without
        problems are left out.
    """
    judged = [score for score in scores if score.answer_correct is not None]
    with_target = [score for score in scores if score.level is not None]
    report: dict[str, float] = {}
    if judged:
        report["answer_accuracy"] = fmean(score.answer_correct for score in judged)
    if with_target:
        report["equation_accuracy"] = fmean(score.equation_correct for score in with_target)
        report["canonical_equation_accuracy"] = fmean(score.canonical_correct for score in with_target)
    report["num_equations"] = len(with_target)
    for level in LEVELS:
        scores_of_level = [score for score in judged if score.level == level]
        if scores_of_level:
            report[f"answer_accuracy_{level}"] = fmean(score.answer_correct for score in scores_of_level)
            report[f"num_problems_{level}"] = len(scores_of_level)
    report["num_problems"] = len(judged)
    if len(judged) < len(scores):
        report["num_unjudged"] = len(scores) - len(judged)
    return report


@checked
def context_report(contexts: Sequence[str], scores: Sequence[PredictionScore]) -> dict[str, float]:
    """Return the share of contexts with several questions that are all answered correctly, and their number."""
    answers: dict[str, list[bool]] = {}
    for context, score in zip(contexts, scores, strict=True):
        if context and score.answer_correct is not None:
            answers.setdefault(context, []).append(score.answer_correct)
    all_correct = [all(corrects) for corrects in answers.values() if len(corrects) > 1]
    if not all_correct:
        return {}
    return {"context_accuracy": sum(all_correct) / len(all_correct), "num_contexts": len(all_correct)}


@checked
def reason_counts(scores: Sequence[PredictionScore]) -> dict[str, int]:
    """Return the number of predictions for each reason of failure, the most frequent reason first."""
    counts = Counter(score.reason for score in scores)
    del counts["correct"]
    return dict(counts.most_common())


def percent(fraction: float | None) -> str:
    """Format a share in percent with one decimal, or `None` as a dash."""
    return "-" if fraction is None else f"{100 * fraction:.1f}"


def is_share(metric: str) -> bool:
    """Return whether a metric is a share, to be shown in percent, such as an accuracy. BLEU is none."""
    return metric.startswith(SHARES)


def metric_cell(name: str, value: float | None) -> tuple[str, str]:
    """Return the heading and the table cell of a metric of any task."""
    if is_share(name):
        return f"{name.replace('_', ' ')} %", percent(value)
    return name.replace("_", " "), "-" if value is None else f"{value:.3f}"


def of_equations(report: Mapping[str, float], prefix: str = "") -> str:
    """Return the suffix of an equation accuracy: the number of equations if it differs from the number of problems."""
    num_equations = report.get(f"{prefix}num_equations")
    if num_equations in (None, 0, report.get(f"{prefix}num_problems")):
        return ""
    return f" of {int(num_equations)}"


def report_cells(report: Mapping[str, float]) -> dict[str, str]:
    """Format a report of any task as table cells by heading, with a cell for each level of complexity in it."""
    if "num_problems" not in report:
        return _cells_of_task(report)
    problems = f"{int(report['num_problems'])}"
    num_unjudged = int(report.get("num_unjudged", 0))
    if num_unjudged:
        problems += f" ({num_unjudged} left out)"
    cells = {
        "problems": problems,
        "answer %": percent(report.get("answer_accuracy")),
        "equation %": percent(report.get("equation_accuracy")) + of_equations(report),
    }
    for level in LEVELS:
        num_problems = report.get(f"num_problems_{level}")
        if num_problems:
            accuracy = percent(report.get(f"answer_accuracy_{level}"))
            cells[level] = f"{accuracy} of {int(num_problems)}"
    num_contexts = report.get("num_contexts")
    if num_contexts:
        cells["contexts all right %"] = f"{percent(report['context_accuracy'])} of {int(num_contexts)}"
    return cells


def _cells_of_task(report: Mapping[str, float]) -> dict[str, str]:
    """Format the report of a task without problems: first the counts, then the metrics."""
    counts = {}
    metrics = {}
    for name, value in report.items():
        if name.startswith("num_"):
            counts[name.removeprefix("num_")] = f"{value:,}"
        else:
            heading, cell = metric_cell(name, value)
            metrics[heading] = cell
    return counts | metrics

"""Pseudo-labelling: a solver adds equations to problems with or without an answer."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..checked_types import checked
from ..data.batches.mwp_processor import MwpProcessor
from ..data.corpus.pretraining_texts import held_out_texts, loose_digest, masked_digest
from ..data.reading.file_format import FileFormat
from ..data.reading.usability import find_answer_fault
from ..metrics import score_prediction
from ..models import Solver
from ..options.checks import check_share
from ..plausibility import PlausibilityReranker
from ..problems import MathWordProblem, refusal
from ..usage_error import UsageError
from .kept_records import ProgressBar
from .solve_problems import solve_problems
from .solver_prediction import SolverPrediction


FATES = {
    "labelled": "a tree evaluates to the answer",
    "not found": "no tree evaluates to the answer",
    "excluded": "an excluded dataset contains the masked text",
    "duplicate": "an earlier problem has the same masked text",
    "no answer": "the answer is missing, ambiguous or cannot be parsed, or the text has no number",
    "surest": "labelled without an answer: the prediction is among the most confident",
    "unsure": "not labelled: without an answer, and the prediction is not among the most confident",
}


@dataclass(frozen=True)
class LabelledProblems:
    """Result of [`label_problems`]."""

    # id, text, equation, answer, language, log_probability and 0-based rank of the tree; without an answer, confidence
    rows: list[dict[str, Any]]
    fates: dict[str, int]  # number of problems by outcome, a key of `FATES`


@checked
def label_problems(
    model: Solver,
    processor: MwpProcessor,
    problems: Iterable[MathWordProblem | Mapping[str, Any]],
    *,
    num_beams: int = 5,
    pseudo_label_fraction: float = 0.0,
    reranker: PlausibilityReranker | None = None,
    exclude: Iterable[str | Path] = (),
    data_dir: str | Path | None = None,
    file_format: FileFormat | None = None,
    batch_size: int = 64,
    unfinished: str | Path | None = None,
    progress: ProgressBar = None,
) -> LabelledProblems:
    """
    Label problems with equations for self-training. A problem with an answer is labelled with the most probable tree
    that evaluates to the answer. Of the problems without an answer, those with the most confident predictions are
    labelled with the predicted tree. Among problems that differ only in their numbers, only the first is labelled.

    Args:
        model ([`Solver`]), processor ([`MwpProcessor`]): The solver, on its device.
        problems (`Iterable`): Problems or rows from [`load_mwp_dataset`]. Equations are ignored.
        num_beams (`int`, *optional*, defaults to 5): Number of beams, and of trees to try for each problem.
        pseudo_label_fraction (`float`, *optional*, defaults to 0.0): Share of the problems without an answer to label.
        reranker ([`PlausibilityReranker`], *optional*): Re-ranker that selects the predictions for problems without an
            answer and computes their confidence.
        exclude (`Iterable[str]`, *optional*), data_dir (`str`, *optional*): Datasets or files whose texts must not be
            labelled, even with different numbers, and folder of the datasets.
        file_format ([`FileFormat`], *optional*): Names of the fields, encoding and separator of files.
        batch_size (`int`, *optional*, defaults to 64): Passed to [`solve_problems`].
        unfinished (`str`, *optional*), progress (`Callable`, *optional*): Passed to [`solve_problems`].

    Raises:
        UsageError: If the language of a problem is not that of the solver, or there is no problem to label.
        TypeError: If a single problem is passed instead of several.
        ValueError: If a number is below 1, or a share is not in [0, 1).

    Example:

    ```python
    >>> teacher, processor = hf_mwp.load_solver("teacher")
    >>> labelled = hf_mwp.label_problems(teacher, processor, rows, num_beams=5, exclude=["math23k"])
    >>> labelled.fates["labelled"], labelled.rows[0]["equation"]
    ```
    """
    check_share({"pseudo_label_fraction": pseudo_label_fraction}, "pseudo_label_fraction")
    fates = Counter(dict.fromkeys(FATES, 0))
    excluded = held_out_texts(exclude, data_dir, file_format)
    asked = _problems_to_label(problems, processor, excluded, pseudo_label_fraction > 0, fates)
    options = {"num_beams": num_beams, "top_k": num_beams, "batch_size": batch_size, "progress": progress}
    found = solve_problems(model, processor, asked, reranker=reranker, unfinished=unfinished, **options)
    rows: list[dict[str, Any]] = list(filter(None, map(_label, found)))
    # Keep the labels with the highest confidence among the problems without an answer.
    without = sum(problem.answer is None for problem in asked)
    own = [place for place, row in enumerate(rows) if row["answer"] is None]
    own.sort(key=lambda place: rows[place]["confidence"], reverse=True)
    unsure = set(own[round(without * pseudo_label_fraction) :])
    labelled = [row for place, row in enumerate(rows) if place not in unsure]
    fates["surest"] = sum(row["answer"] is None for row in labelled)
    fates["unsure"] = without - fates["surest"]
    fates["labelled"] = len(labelled) - fates["surest"]
    fates["not found"] = len(asked) - without - fates["labelled"]
    return LabelledProblems(labelled, dict(fates))


def _problems_to_label(
    problems: Iterable[MathWordProblem | Mapping[str, Any]],
    processor: MwpProcessor,
    excluded: Iterable[str],
    unanswered: bool,
    fates: Counter[str],
) -> list[MathWordProblem]:
    """Return the problems to label, without equations. Count the skipped problems in `fates`."""
    language = processor.language
    excluded_digests = set(map(loose_digest, excluded))
    seen: set[bytes] = set()
    asked = []
    given = list(problems)
    for row, read in zip(given, processor.problems(given), strict=True):
        problem = replace(read, equation=None)
        if problem.language != language:
            known = isinstance(row, Mapping) and "file" in row
            place = f"{row['file']}, line {row['line']}, field language: " if known else ""
            raise UsageError(f"{place}the language differs from the language of the solver ({language}).")
        no_answer = not unanswered if problem.answer is None else find_answer_fault(problem) is not None
        if no_answer or refusal(problem) is not None:
            fates["no answer"] += 1
        elif loose_digest(problem.text) in excluded_digests:
            fates["excluded"] += 1
        elif (key := masked_digest(problem.text, language)) in seen:
            fates["duplicate"] += 1
        else:
            seen.add(key)
            asked.append(problem)
    if not asked:
        counted = ", ".join(f"{count} {fate}" for fate, count in fates.items() if count)
        raise UsageError(f"There is no problem to label{f': {counted}' if counted else ''}.")
    return asked


def _label(prediction: SolverPrediction) -> dict[str, Any] | None:
    """Return the row for the first tree that evaluates to the answer or, without an answer, for the predicted tree."""
    problem = prediction.problem
    own = problem.answer is None
    for rank, (expression, log_probability) in enumerate(prediction.beam.trees):
        own_answer = expression == prediction.expression and prediction.score.value is not None
        right = own_answer if own else score_prediction(problem, expression).answer_correct
        if right:
            row = {"id": problem.id, "text": problem.text, "answer": problem.answer, "language": problem.language}
            row |= {"equation": expression.bind(problem.numbers).to_infix(), "log_probability": log_probability}
            return row | {"rank": rank} | ({"confidence": prediction.confidence} if own else {})
    return None

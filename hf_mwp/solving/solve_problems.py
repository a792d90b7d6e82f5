"""Solving of many problems in batches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..metrics.matching import ANSWER_MATCHES
from ..options.checks import check_at_least_one
from ..problems import MathWordProblem
from .beams import find_beams, find_kept_beams
from .solver_prediction import SolverPrediction


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver
    from ..plausibility import PlausibilityReranker


def solve_problems(
    model: MwpSolver,
    processor: MwpProcessor,
    problems: Iterable[str | MathWordProblem | Mapping[str, Any]],
    *,
    num_beams: int | None = None,
    top_k: int | None = 1,
    max_decode_length: int | None = None,
    reranker: PlausibilityReranker | None = None,
    answer_match: str = "annotated",
    batch_size: int | None = 64,
    progress: Callable[[Sequence], Iterable] | None = None,
    unfinished: str | Path | None = None,
) -> list[SolverPrediction]:
    """
    Solve problems, and score the predictions for problems with an answer or an equation.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver, on its device.
        problems (`Iterable`): Plain texts, problems, or rows of [`load_mwp_dataset`].
        num_beams (`int`, *optional*): Beams of the search, at least `top_k`; defaults to 1, or to those of the
            re-ranker.
        top_k (`int`, *optional*, defaults to 1): Trees to keep of each problem; `None`, or a re-ranker, keeps all
            beams.
        max_decode_length (`int`, *optional*): Most symbols of a tree; defaults to the decoder's own limit.
        reranker ([`PlausibilityReranker`], *optional*): Chooses the most plausible answer of the beams.
        answer_match (`str`, *optional*, defaults to `"annotated"`): See [`metrics.answers_match`].
        batch_size (`int`, *optional*, defaults to 64): Problems of similar length that are solved together; `None` for
            all at once.
        progress (`Callable`, *optional*): Wraps the list of batches, like `tqdm.tqdm`.
        unfinished (`str`, *optional*): Folder of finished work, from which the same call resumes after a kill, and
            which processes under `accelerate launch` share. The caller removes it.

    Returns:
        `list[SolverPrediction]`: in the order of the problems. `score.reason` is `"correct"` or a key of
        [`metrics.FAILURE_REASONS`]; `error` is the reason for a missing answer.

    Raises:
        PlausibilityError: the re-ranker does not fit the language or the beams.
        TypeError: a single problem is given instead of several, or a problem has no text.
        ValueError: a number is below 1, or `answer_match` is unknown.

    Example:

    ```python
    >>> model, processor = hf_mwp.load_solver("model_cards/mwp-student-3L-gts-math23k")
    >>> rows = hf_mwp.load_mwp_dataset("math23k")["test"]
    >>> predictions = hf_mwp.solve_problems(model, processor, rows, num_beams=5)
    >>> predictions[0].to_dict()["prediction"], predictions[0].score.reason
    >>> hf_mwp.metrics.accuracy_report([each.score for each in predictions])["answer_accuracy"]
    ```
    """
    check_several(problems)
    counts = {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length, "batch_size": batch_size}
    check_at_least_one(counts, *counts)
    if answer_match not in ANSWER_MATCHES:
        raise ValueError(f"`answer_match` must be one of {', '.join(ANSWER_MATCHES)}, not {answer_match!r}.")
    num_beams = (num_beams or 1) if reranker is None else reranker.check(processor.language, num_beams)
    num_beams = max(num_beams, top_k or 1)
    kept = num_beams if top_k is None or reranker is not None else top_k
    read = processor.problems(problems)
    search = find_beams if unfinished is None else partial(find_kept_beams, unfinished)
    beams = search(model, processor, read, num_beams, kept, max_decode_length, batch_size, progress)
    predictions = []
    for problem, beam in zip(read, beams, strict=True):
        ranked = None if reranker is None else tuple(reranker.rerank(problem, beam.trees))
        predictions.append(SolverPrediction(problem, beam, ranked, answer_match))
    return predictions


def check_several(problems: Any) -> None:
    """Raise `TypeError` for a single problem, whose characters or fields would be taken for problems."""
    if isinstance(problems, str | Mapping | MathWordProblem):
        raise TypeError(f"`problems` must be several, not a {type(problems).__name__}: give a list.")

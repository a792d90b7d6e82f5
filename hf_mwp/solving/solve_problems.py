"""Function that solves many problems in batches and scores the predictions."""

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
        problems (`Iterable`): Plain texts, problems, or rows from [`load_mwp_dataset`].
        num_beams (`int`, *optional*): Number of beams, raised to `top_k` if it is smaller. Defaults to the number of
            beams of the re-ranker or, without a re-ranker, to 1.
        top_k (`int`, *optional*, defaults to 1): Number of trees to keep for each problem. All trees are kept if it is
            `None` or if there is a re-ranker.
        max_decode_length (`int`, *optional*): Maximum number of symbols of a tree. Defaults to the limit of the
            decoder.
        reranker ([`PlausibilityReranker`], *optional*): Re-ranker that selects the most plausible answer in the beam.
        answer_match (`str`, *optional*, defaults to `"annotated"`): Target value, see [`metrics.answers_match`].
        batch_size (`int`, *optional*, defaults to 64): Number of problems per batch. `None` solves all problems in a
            single batch.
        progress (`Callable`, *optional*): Function that wraps the list of batches, such as `tqdm.tqdm`.
        unfinished (`str`, *optional*): Folder for intermediate results, with which an interrupted call resumes and
            processes under `accelerate launch` share the work. The caller must delete it.

    Returns:
        `list[SolverPrediction]`: A prediction for each problem. `score.reason` is `"correct"` or a key of
        [`metrics.FAILURE_REASONS`]. If there is no answer, `error` contains the reason.

    Raises:
        PlausibilityError: If the re-ranker does not support the language or the number of beams.
        TypeError: If a single problem is passed instead of several, or a problem has no text.
        ValueError: If a number is below 1, or `answer_match` is unknown.

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
    """Raise `TypeError` for a single problem, whose characters or fields would be treated as problems."""
    if isinstance(problems, str | Mapping | MathWordProblem):
        raise TypeError(f"`problems` must contain several problems, got a {type(problems).__name__}. Pass a list.")

"""Solving a whole set of problems, and what to say about the result."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any


if TYPE_CHECKING:
    from rich.console import Console

    from ..data.batches.mwp_processor import MwpProcessor
    from ..metrics import TrainingOverlap
    from ..models import MwpSolver
    from .solver_prediction import SolverPrediction


def predict(
    model: MwpSolver,
    processor: MwpProcessor,
    rows: Sequence[Mapping[str, Any]],
    batch_size: int = 64,
    num_beams: int = 1,
    max_decode_length: int | None = None,
    rule: str = "annotated",
    console: Console | None = None,
) -> list[SolverPrediction]:
    """
    Solves problems and checks the answers, as an evaluation of [`SolverTrainer`] does.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver.
        rows (`Sequence[Mapping]`): Rows of [`load_mwp_dataset`].
        batch_size (`int`, *optional*, defaults to 64): Problems solved at once; each batch has texts of like length.
        num_beams (`int`, *optional*, defaults to 1), max_decode_length (`int`, *optional*): See [`MwpSolver.solve`].
        rule (`str`, *optional*, defaults to `"annotated"`): See [`metrics.answers_match`].
        console (`rich.console.Console`, *optional*): Shows a progress bar there.

    Returns:
        `list[SolverPrediction]`: in the order of the rows.
    """
    from .solver_prediction import read_predictions

    found = search(model, processor, rows, batch_size, num_beams, max_decode_length, console=console)
    best, scores = zip(*(trees[0] for trees in found), strict=True) if found else ((), ())
    return read_predictions(list(rows), best, scores, processor, rule)


def search(
    model: MwpSolver,
    processor: MwpProcessor,
    rows: Sequence[Mapping[str, Any]],
    batch_size: int = 64,
    num_beams: int = 1,
    max_decode_length: int | None = None,
    num_return_sequences: int = 1,
    console: Console | None = None,
) -> list[list[tuple[list[int], float]]]:
    """
    The trees that a solver finds for each problem.

    Args:
        num_return_sequences (`int`, *optional*, defaults to 1): Trees of a problem, at most `num_beams`.
        Others: as in [`predict`].

    Returns:
        `list[list[tuple[list[int], float]]]`: for each row the prefix ids and log probabilities, best first; an empty
        tree of probability 0 where there is nothing to solve ([`~problems.refusal`]).
    """
    from ..data import problem_from_row
    from ..problems import refusal

    model.eval()
    problems = [problem_from_row(row, numerals=processor.numerals) for row in rows]
    columns = processor.encode(problems)
    asked = [index for index, problem in enumerate(problems) if refusal(problem) is None]
    order = sorted(asked, key=columns["length"].__getitem__, reverse=True)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if console is not None:
        from rich.progress import track

        batches = track(batches, "Solving", console=console, transient=True, disable=console.quiet)
    found: list = [[([], -math.inf)] for _ in rows]
    for batch in batches:
        inputs = processor.pad({name: [values[index] for index in batch] for name, values in columns.items()})
        solved = model.solve(
            input_ids=inputs["input_ids"].to(model.device),
            attention_mask=inputs["attention_mask"].to(model.device),
            number_positions=inputs["number_positions"].to(model.device),
            num_beams=num_beams,
            max_length=max_decode_length,
            num_return_sequences=num_return_sequences,
        )
        for index, trees, scores in zip(batch, solved.sequences.tolist(), solved.scores.tolist(), strict=True):
            found[index] = list(zip(trees, scores, strict=True))
    return found


def group_reports(
    predictions: Sequence[SolverPrediction], overlap: TrainingOverlap
) -> tuple[dict[str, dict[str, float]], dict[str, Any]]:
    """Accuracies of predictions, all and by what was trained on, and what the record says of that."""
    problems = [prediction.problem for prediction in predictions]
    return overlap.reports(problems, [prediction.score for prediction in predictions]), overlap.record(problems)

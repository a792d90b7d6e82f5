"""Re-ranking as the commands use it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .set_solving import search


if TYPE_CHECKING:
    from rich.console import Console

    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver
    from .plausibility import PlausibilityReranker
    from .solver_prediction import SolverPrediction

RERANK_HELP = (
    "Choose among the answers of the beams by how plausible they are, with the plausibility.json beside the model."
)
RERANKER_HELP = "Folder or Hub id of a re-ranker to use in its place (`hf-mwp rerank` makes one)."


def wanted_reranker(
    rerank: bool, reranker: str | None, model: str, processor: MwpProcessor, num_beams: int | None
) -> tuple[PlausibilityReranker | None, int]:
    """
    The re-ranker that the options ask for, and the beams of the search.

    Args:
        rerank (`bool`), reranker (`str`, *optional*): The options; to name a re-ranker asks for it.
        model (`str`): Folder or Hub id of the solver.
        processor ([`MwpProcessor`]): Of the solver.
        num_beams (`int`, *optional*): Beams, if given: by default 1, or those of the re-ranker.

    Raises:
        UsageError: there is none, or it does not suit the solver or the beams.
    """
    from .plausibility import PlausibilityError, PlausibilityReranker

    if not rerank and reranker is None:
        return None, num_beams or 1
    try:
        found = PlausibilityReranker.from_pretrained(reranker or model)
        return found, found.check(processor.language, num_beams)
    except PlausibilityError as error:
        raise UsageError(f"--rerank: {error}.") from error


def predict_reranked(
    model: MwpSolver,
    processor: MwpProcessor,
    rows: Sequence[Mapping[str, Any]],
    reranker: PlausibilityReranker,
    batch_size: int,
    num_beams: int,
    max_decode_length: int | None = None,
    rule: str = "annotated",
    console: Console | None = None,
) -> tuple[list[SolverPrediction], list[SolverPrediction], list[dict[str, Any]]]:
    """
    Solves problems once and checks the answers that come first without and with re-ranking.

    Args:
        Others: as in [`~cli.evaluation.predict`].

    Returns:
        `tuple[list, list, list]`: the predictions without and with, and what to add to the records of the latter.
    """
    from ..data import problem_from_row
    from . import read_beam
    from .solver_prediction import read_predictions

    found = search(model, processor, rows, batch_size, num_beams, max_decode_length, num_beams, console=console)
    chosen, added = [], []
    for row, trees in zip(rows, found, strict=True):
        problem = problem_from_row(row, numerals=processor.numerals)
        ranked = reranker.rerank(problem, read_beam(trees, processor))
        if not ranked:
            chosen.append(trees[0])
            added.append({"plausibility": None, "instead_of": None})
            continue
        best, first = ranked[0], min(ranked, key=lambda answer: answer.rank)
        chosen.append((processor.vocabulary.encode(best.expression), best.log_probability))
        added.append({"plausibility": round(best.plausibility, 4), "instead_of": None})
        if first is not best:
            added[-1]["instead_of"] = {
                "prediction": first.expression.bind(problem.numbers).to_infix(),
                "value": float(first.value),
                "complaints": list(first.complaints),
            }
    predictions = []
    for trees in ([each[0] for each in found], chosen):
        sequences, scores = zip(*trees, strict=True) if trees else ((), ())
        predictions.append(read_predictions(list(rows), sequences, scores, processor, rule))
    return predictions[0], predictions[1], added

"""A re-ranker made for a solver."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..distillation.teachers.cache.fingerprint import hash_model, hash_processing
from ..expressions import Expression
from ..metrics import answers_match
from ..problems import MathWordProblem
from .beams import read_trees
from .kept_records import kept_records
from .plausibility import PlausibilityReranker
from .plausibility.fitting import fit_plausibility, right_answer
from .solve_problems import read_problem, solve_problems


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver

# Problems that a kill can lose.
AT_ONCE = 512

Trees = Sequence[tuple[Expression, float]]


def fit_reranker(
    model: MwpSolver,
    processor: MwpProcessor,
    parts: Mapping[str, Iterable[MathWordProblem | Mapping[str, Any]]],
    *,
    num_beams: int = 20,
    regularization: float = 1.0,
    beams_dir: str | Path | None = None,
    fitted_on: Mapping[str, Any] | None = None,
    batch_size: int = 64,
    progress: Callable[[Sequence], Iterable] | None = None,
) -> PlausibilityReranker:
    """
    Solves problems, fits a re-ranker to the beams of the first part ([`fit_plausibility`]), and measures it on all.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver, on its device.
        parts (`Mapping[str, Iterable]`): Problems or rows of [`load_mwp_dataset`], by the name of the part.
        num_beams (`int`, *optional*, defaults to 20): Beams of the search, the least that can be re-ranked later.
        regularization (`float`, *optional*, defaults to 1.0), fitted_on (`Mapping`, *optional*): As in
            [`fit_plausibility`].
        beams_dir (`str`, *optional*): Folder where beams are kept: what is there is not searched for again.
        batch_size (`int`, *optional*, defaults to 64), progress (`Callable`, *optional*): As in [`solve_problems`].

    Returns:
        [`PlausibilityReranker`]: with what it was fitted on, and the shares of right answers of each part.

    Raises:
        PlausibilityError: as [`fit_plausibility`].
    """
    solver = {"model": hash_model(model), "processor": hash_processing(processor), "num_beams": num_beams}
    options = {"num_beams": num_beams, "top_k": num_beams, "batch_size": batch_size, "progress": progress}

    def search(tried: Sequence[MathWordProblem]) -> list[list]:
        found = solve_problems(model, processor, tried, **options)
        return [[(processor.vocabulary.encode(tree), score) for tree, score in each.beam.trees] for each in found]

    reranker, measured = None, {}
    for part, given in parts.items():
        problems = [read_problem(problem, processor) for problem in given]
        kept = chain.from_iterable(kept_records(beams_dir, solver, problems, search, AT_ONCE))
        beams = [read_trees(trees, processor) for trees in kept]
        if reranker is None:
            reranker = fit_plausibility(problems, beams, num_beams, regularization, fitted_on)
        measured[part] = _measure(reranker, problems, beams)
    return replace(reranker, measured=measured)


def _measure(
    reranker: PlausibilityReranker, problems: Sequence[MathWordProblem], beams: Sequence[Trees]
) -> dict[str, float]:
    """Shares of right answers: of the most probable tree, of the most plausible answer, and of the best of a beam."""
    counts = {"without": 0, "with": 0, "in_beam": 0}
    for problem, beam in zip(problems, beams, strict=True):
        target = right_answer(problem)
        if target is None:
            continue
        ranked = reranker.rerank(problem, beam)
        right = [answers_match(answer.value, target) for answer in ranked]
        counts["without"] += any(ok and answer.rank == 0 for ok, answer in zip(right, ranked, strict=True))
        counts["with"] += any(right[:1])
        counts["in_beam"] += any(right)
    return {"num_problems": len(problems)} | {name: round(n / len(problems), 4) for name, n in counts.items()}

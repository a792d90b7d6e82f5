"""Function that fits a re-ranker to a solver and measures it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from ..metrics import answers_match
from ..options.checks import check_share
from ..plausibility import PlausibilityError, PlausibilityReranker
from ..plausibility.plausibility_reranker import check_fit
from ..problems import MathWordProblem
from .fit_plausibility import Trees, calibrate, fit_plausibility, right_answer
from .solve_problems import solve_problems


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver

# The published solver answers 58 % of its training problems correctly with this dropout and 91 % without, and 77 % of
# new problems.
UNSURE_DROPOUT = 0.35


def fit_reranker(
    model: MwpSolver,
    processor: MwpProcessor,
    parts: Mapping[str, Iterable[MathWordProblem | Mapping[str, Any]]],
    *,
    num_beams: int = 20,
    min_beams: int | None = None,
    regularization: float = 1.0,
    mc_dropout_fraction: float = 0.0,
    fitted_on: Mapping[str, Any] | None = None,
    batch_size: int = 64,
    progress: Callable[[Sequence], Iterable] | None = None,
) -> PlausibilityReranker:
    """
    Solve problems, fit a re-ranker to the beams of the first split ([`fit_plausibility`]), calibrate its
    plausibilities on the other splits and on problems solved with dropout ([`calibrate`]), and measure it on all
    splits.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver, on its device.
        parts (`Mapping[str, Iterable]`): Problems or rows from [`load_mwp_dataset`], by split name. Problems that have
            neither an answer nor an equation with a value are skipped.
        num_beams (`int`, *optional*, defaults to 20): Number of beams of the search.
        min_beams (`int`, *optional*): Minimum number of beams for re-ranking later. All splits except the first are
            also measured with this number. Defaults to `num_beams`.
        regularization (`float`, *optional*, defaults to 1.0), fitted_on (`Mapping`, *optional*): Passed to
            [`fit_plausibility`].
        mc_dropout_fraction (`float`, *optional*, defaults to 0.0): Share of the first split, at its end, to solve with
            dropout in the encoder, because a solver is overconfident on its training problems.
        batch_size (`int`, *optional*, defaults to 64), progress (`Callable`, *optional*): Passed to
            [`solve_problems`].

    Returns:
        [`PlausibilityReranker`]: The fitted re-ranker. `measured` contains the accuracies by split.

    Raises:
        PlausibilityError: If fitting fails ([`fit_plausibility`]), or if `mc_dropout_fraction` is set and the encoder
            has no dropout.

    Example:

    ```python
    >>> model, processor = hf_mwp.load_solver("teacher")
    >>> parts = hf_mwp.load_mwp_dataset("math23k")
    >>> parts = {"train": parts["train"].select(range(4000)), "validation": parts["validation"]}
    >>> reranker = hf_mwp.fit_reranker(model, processor, parts, num_beams=20)
    >>> reranker.save_pretrained("teacher")
    ```
    """
    check_fit(num_beams, min_beams, regularization)
    check_share({"mc_dropout_fraction": mc_dropout_fraction}, "mc_dropout_fraction")

    def search(problems: Sequence[MathWordProblem], width: int = num_beams, dropout: float = 0.0) -> list[Trees]:
        options = {"num_beams": width, "top_k": width, "batch_size": batch_size, "progress": progress}
        with _encoder_dropout(model, dropout) if dropout else nullcontext():
            return [each.beam.trees for each in solve_problems(model, processor, problems, **options)]

    def read(given: Iterable[MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        return [problem for problem in processor.problems(given) if right_answer(problem) is not None]

    (part, given), *others = parts.items()
    problems = read(given)
    # Solve at least one problem without dropout.
    num_sure = max(len(problems) - round(mc_dropout_fraction * len(problems)), 1)
    sure, unsure = problems[:num_sure], problems[num_sure:]
    beams, unsure_beams = search(sure), search(unsure, dropout=UNSURE_DROPOUT) if unsure else []
    about = dict(fitted_on or {}) | ({"mc_dropout_fraction": mc_dropout_fraction} if unsure else {})
    reranker = fit_plausibility(problems, beams + unsure_beams, num_beams, regularization, about)
    reranker = replace(reranker, min_beams=min_beams)
    held_out = {part: read(given) for part, given in others}
    found = {part: search(each) for part, each in held_out.items()}
    reranker = calibrate(
        reranker,
        [*unsure, *chain.from_iterable(held_out.values())],
        [*unsure_beams, *chain.from_iterable(found.values())],
    )
    measured = {f"{part}, unsure": _measure(reranker, unsure, unsure_beams)} if unsure else {}
    measured[part] = _measure(reranker, sure, beams)
    for part, problems in held_out.items():
        if problems:
            measured[part] = _measure(reranker, problems, found[part])
            if min_beams is not None:
                measured[f"{part}, {min_beams} beams"] = _measure(reranker, problems, search(problems, min_beams))
    return replace(reranker, measured=measured)


@contextmanager
def _encoder_dropout(model: MwpSolver, rate: float) -> Iterator[None]:
    """Context manager that activates dropout in the encoder, with a fixed seed."""
    rates = {layer: layer.p for layer in model.encoder.modules() if isinstance(layer, nn.Dropout)}
    if not rates:
        raise PlausibilityError("the encoder has no dropout layers. Set `mc_dropout_fraction` to 0")
    hook = model.encoder.register_forward_pre_hook(lambda encoder, inputs: encoder.train() and None)
    try:
        for layer in rates:
            layer.p = rate
        with torch.random.fork_rng():
            torch.manual_seed(0)
            yield
    finally:
        hook.remove()
        model.eval()
        for layer, former in rates.items():
            layer.p = former


def _measure(
    reranker: PlausibilityReranker, problems: Sequence[MathWordProblem], beams: Sequence[Trees]
) -> dict[str, float]:
    """Return the accuracies without and with the re-ranker, and the share of beams that contain a correct answer."""
    counts = {"without": 0, "with": 0, "in_beam": 0}
    for problem, beam in zip(problems, beams, strict=True):
        ranked, target = reranker.rerank(problem, beam), right_answer(problem)
        right = [answer.rank for answer in ranked if answers_match(answer.value, target)]
        counts["without"] += 0 in right
        counts["with"] += bool(right) and right[0] == ranked[0].rank
        counts["in_beam"] += bool(right)
    return {"num_problems": len(problems)} | {name: round(n / len(problems), 4) for name, n in counts.items()}

"""Functions that fit a plausibility re-ranker to a solver, calibrate and measure it."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp.runtime.plausibility.features import FEATURES, describe_answers
from hf_mwp.runtime.plausibility.plausibility_reranker import (
    CONSTANT_TERM,
    SHARE_TERM,
    PlausibilityError,
    PlausibilityReranker,
    check_fit,
    confidence_terms,
)
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics import answers_match
from hf_mwp.solver.models import Solver
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_share

from .kept_records import ProgressBar
from .reranker_beams import BeamSearch, SolvedProblems, Trees, join_solved, right_answer


# Factors that `calibrate` tries, from 0.05 to 3, and the minimum of the plausibilities that it reads.
SCALES = [0.05 * 60 ** (step / 100) for step in range(101)]
MIN_PLAUSIBILITY = 1e-300
# With this dropout, the published solver answers 58 % of its training problems (91 without), and 77 of new ones.
UNSURE_DROPOUT = 0.35
# Weight of the squares of the confidence's weights in [`fit_confidence`], for each problem.
CONFIDENCE_PENALTY = 0.002


@checked
def fit_reranker(
    model: Solver,
    processor: MwpProcessor,
    parts: Mapping[str, Iterable[MathWordProblem | Mapping[str, Any]]],
    *,
    num_beams: int = 20,
    min_beams: int | None = None,
    score_margin: float | None = None,
    regularization: float = 1.0,
    mc_dropout_fraction: float = 0.0,
    other_problems: Mapping[str, Iterable[MathWordProblem | Mapping[str, Any]]] | None = None,
    fitted_on: Mapping[str, Any] | None = None,
    batch_size: int = 32,
    progress: ProgressBar = None,
) -> PlausibilityReranker:
    """
    Fit a re-ranker to the beams of the first split ([`fit_plausibility`]), calibrate its plausibilities on the other
    splits and on problems solved with dropout ([`calibrate`]), and measure it on all splits. With `other_problems`,
    the plausibility of an answer becomes its confidence, fitted on them and the other splits ([`fit_confidence`]).

    Args:
        model ([`Solver`]), processor ([`MwpProcessor`]): The solver, on its device.
        parts (`Mapping[str, Iterable]`): Problems or rows from [`load_mwp_dataset`], by split name. Problems that have
            neither an answer nor an equation with a value are skipped.
        num_beams (`int`, *optional*, defaults to 20): Number of beams of the search.
        min_beams (`int`, *optional*): Minimum number of beams for re-ranking later. All splits except the first are
            also measured with this number. Defaults to `num_beams`.
        score_margin (`float`, *optional*): Margin of the search, see [`solve_problems`].
        regularization (`float`, *optional*, defaults to 1.0), fitted_on (`Mapping`, *optional*): Passed to
            [`fit_plausibility`].
        mc_dropout_fraction (`float`, *optional*, defaults to 0.0): Share of the first split, at its end, to solve with
            dropout in the encoder. A solver is overconfident on its training problems; dropout increases the weights
            of the features other than its probability.
        other_problems (`Mapping[str, Iterable]`, *optional*): Problems of other sources, by name, which the solver was
            not trained on. Plausibilities that fit only the splits of `parts` are too large elsewhere.
        batch_size (`int`, *optional*, defaults to 32), progress (`Callable`, *optional*): See [`solve_problems`].

    Returns:
        [`PlausibilityReranker`]: The fitted re-ranker. `measured` contains the accuracies by split.

    Raises:
        PlausibilityError: If fitting fails ([`fit_plausibility`]), or `mc_dropout_fraction` finds no dropout layer.

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

    search = BeamSearch(model, processor, num_beams, score_margin, batch_size, progress)
    (train_name, train_rows), *held_out_splits = parts.items()

    # Solve the training problems, a share of them with dropout, and at least one without.
    training = search.usable(train_rows)
    num_sure = max(len(training) - round(mc_dropout_fraction * len(training)), 1)
    sure = search.solved(training[:num_sure])
    unsure = search.solved(training[num_sure:], dropout=UNSURE_DROPOUT)
    fitted_on = dict(fitted_on or {})
    if unsure.problems:
        fitted_on["mc_dropout_fraction"] = mc_dropout_fraction
    solved_training = join_solved([sure, unsure])
    reranker = fit_plausibility(solved_training.problems, solved_training.beams, num_beams, regularization, fitted_on)
    reranker = replace(reranker, min_beams=min_beams)

    # Calibrate on the problems solved with dropout and on the other splits.
    held_out = {}
    for name, rows in held_out_splits:
        problems = search.usable(rows)
        if problems:
            held_out[name] = search.solved(problems)
    calibration = join_solved([unsure, *held_out.values()])
    reranker = calibrate(reranker, calibration.problems, calibration.beams)

    # Fit the confidence on the other splits and on other problems.
    if other_problems:
        for name, rows in other_problems.items():
            held_out[name] = search.solved(search.usable(rows))
        new = join_solved(held_out.values())
        reranker = fit_confidence(reranker, new.problems, new.beams)

    # Measure the re-ranker.
    measured = {}
    if unsure.problems:
        measured[f"{train_name}, unsure"] = _measure(reranker, unsure)
    measured[train_name] = _measure(reranker, sure)
    for name, solved in held_out.items():
        measured[name] = _measure(reranker, solved)
        if min_beams is not None:
            measured[f"{name}, {min_beams} beams"] = _measure(reranker, search.solved(solved.problems, min_beams))
    return replace(reranker, measured=measured)


@checked
def fit_plausibility(
    problems: Sequence[MathWordProblem],
    beams: Sequence[Trees],
    num_beams: int,
    regularization: float = 1.0,
    fitted_on: Mapping[str, Any] | None = None,
) -> PlausibilityReranker:
    """
    Fit the weights of a re-ranker by maximising the probability of the correct values, with a softmax over the values
    in each beam. The loss is convex, so the result does not depend on a seed.

    Args:
        problems (`Sequence[MathWordProblem]`): Training problems with answers or equations, in the same language.
        beams (`Sequence[Sequence[tuple[Expression, float]]]`): For each problem, the trees found by the solver with
            their log probabilities, best first.
        num_beams (`int`): Number of beams of the search.
        regularization (`float`, *optional*, defaults to 1.0): Weight of the squared distance from the ranking by
            probability, which has weight 1 for `log_mass` and 0 for all other features.
        fitted_on (`Mapping`, *optional*): Names of the model and data, stored in the file of the re-ranker.

    Raises:
        PlausibilityError: If no beam has both a correct and a wrong value, the problems are in several languages, or
            a number is out of range.
    """
    check_fit(num_beams, regularization=regularization)
    languages = sorted({problem.language for problem in problems})
    if len(languages) > 1:
        raise PlausibilityError(f"all problems must have the same language, but they are {' and '.join(languages)}")
    # Features, correctness and beam of each value.
    rows = []
    right = []
    groups = []
    used = 0
    for problem, beam in zip(problems, beams, strict=True):
        target = right_answer(problem)
        if target is None:
            continue
        answers = describe_answers(problem, beam)
        matches = [answers_match(described.answer.value, target) for described in answers]
        if any(matches) and not all(matches):
            rows += [described.features for described in answers]
            right += matches
            groups += [used] * len(answers)
            used += 1
    if not used:
        raise PlausibilityError(
            f"none of the {len(problems)} problems has both a correct and a wrong value in its beam. Use more "
            "problems, more beams, or a trained solver"
        )
    weights = _fit(torch.tensor(rows, dtype=torch.float64), torch.tensor(right), torch.tensor(groups), regularization)
    names = [feature.name for feature in FEATURES]
    return PlausibilityReranker(
        language=languages[0],
        weights=dict(zip(names, weights.tolist(), strict=True)),
        num_beams=num_beams,
        fitted_on=dict(fitted_on or {}, num_problems=len(problems), num_used=used, regularization=regularization),
    )


def calibrate(
    reranker: PlausibilityReranker, problems: Iterable[MathWordProblem], beams: Iterable[Trees]
) -> PlausibilityReranker:
    """
    Scale all weights by the factor with which the plausibility of the first answer best predicts whether it is correct
    (log loss; the temperature of Guo et al., https://huggingface.co/papers/1706.04599). [`fit_plausibility`] leaves
    out problems without a correct answer in the beam, so its plausibilities are too large. The ranking does not
    change. The problems are best those that the solver was not trained on.
    """
    # Log plausibility and beam of each value.
    scores = []
    groups = []
    # Index of the first value of each beam, and its correctness.
    first = []
    right = []
    for problem, beam in zip(problems, beams, strict=True):
        ranked = reranker.rerank(problem, beam)
        target = right_answer(problem)
        if len(ranked) > 1 and target is not None:
            groups += [len(first)] * len(ranked)
            first.append(len(scores))
            right.append(answers_match(ranked[0].value, target))
            scores += [math.log(max(answer.plausibility, MIN_PLAUSIBILITY)) for answer in ranked]
    if not first:
        return reranker
    values = torch.tensor(scores, dtype=torch.float64)
    labels = torch.tensor(right, dtype=torch.float64)
    losses = {}
    for scale in SCALES:
        logs = scale * values
        shares = (logs[first] - _log_sums(logs, torch.tensor(groups))).exp()
        losses[scale] = torch.nn.functional.binary_cross_entropy(shares, labels).item()
    scale = min(losses, key=losses.__getitem__)
    return replace(reranker, weights={name: scale * weight for name, weight in reranker.weights.items()})


def fit_confidence(
    reranker: PlausibilityReranker, problems: Iterable[MathWordProblem], beams: Iterable[Trees]
) -> PlausibilityReranker:
    """
    Fit the probability that the first answer is right: a logistic regression on its softmax and its features, with a
    small penalty on squared weights (Platt, 1999, with the features of the re-ranker). The ranking does not change.
    Problems must be new to the solver; those of several sources let the features tell how far an answer can be
    believed, such as an answer that is a number of the text.
    """
    reranker = replace(reranker, confidence=None)
    names = [CONSTANT_TERM, SHARE_TERM, *(feature.name for feature in FEATURES)]
    rows = []
    right = []
    for problem, beam in zip(problems, beams, strict=True):
        target = right_answer(problem)
        answers = describe_answers(problem, beam)
        ranked = reranker.rank(answers)
        if not ranked or target is None:
            continue
        first = next(described for described in answers if described.answer.best.rank == ranked[0].rank)
        terms = confidence_terms(ranked[0].plausibility, first.features)
        rows.append([terms[name] for name in names])
        right.append(answers_match(ranked[0].value, target))
    if not any(right) or all(right):
        raise PlausibilityError("confidence needs problems with right and with wrong answers. Use more problems")
    values = torch.tensor(rows, dtype=torch.float64)
    labels = torch.tensor(right, dtype=torch.float64)
    # The weights start as the softmax itself. The constant is not penalised.
    prior = torch.tensor([float(name == SHARE_TERM) for name in names], dtype=values.dtype)
    is_penalised = torch.tensor([float(name != CONSTANT_TERM) for name in names], dtype=values.dtype)
    # Features have different ranges.
    scales = values.std(0).clamp(min=0.05)
    weights = prior.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=500, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        distances = (weights - prior) * scales * is_penalised
        total = nn.functional.binary_cross_entropy_with_logits(values @ weights, labels)
        total = total + CONFIDENCE_PENALTY * distances.square().sum()
        total.backward()
        return total

    optimizer.step(loss)
    confidence = dict(zip(names, weights.detach().tolist(), strict=True))
    return replace(reranker, confidence=confidence)


def _measure(reranker: PlausibilityReranker, solved: SolvedProblems) -> dict[str, float]:
    """Return the accuracies without and with the re-ranker, and the share of beams that contain a correct answer."""
    totals = {"without": 0, "with": 0, "in_beam": 0}
    for problem, beam in zip(solved.problems, solved.beams, strict=True):
        ranked = reranker.rerank(problem, beam)
        target = right_answer(problem)
        ranks = [answer.rank for answer in ranked if answers_match(answer.value, target)]
        if ranks:
            totals["without"] += 0 in ranks
            totals["with"] += ranks[0] == ranked[0].rank
            totals["in_beam"] += 1
    num_problems = len(solved.problems)
    shares = {name: round(total / num_problems, 4) for name, total in totals.items()}
    return {"num_problems": num_problems} | shares


def _fit(rows: Tensor, right: Tensor, groups: Tensor, regularization: float) -> Tensor:
    """Fit weights `(features,)` to the `rows` `(values, features)`. `groups` contains the beam index of each value."""
    prior = torch.tensor([float(feature.name == "log_mass") for feature in FEATURES], dtype=rows.dtype)
    weights = prior.clone().requires_grad_()
    optimizer = torch.optim.LBFGS([weights], max_iter=500, tolerance_grad=1e-6, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimizer.zero_grad()
        scores = rows @ weights
        likelihood = _log_sums(scores[right], groups[right]) - _log_sums(scores, groups)
        total = regularization * (weights - prior).square().sum() - likelihood.sum()
        total.backward()
        return total

    optimizer.step(loss)
    return weights.detach()


def _log_sums(scores: Tensor, groups: Tensor) -> Tensor:
    """Compute the log-sum-exp of the scores in each group."""
    num_groups = int(groups[-1]) + 1
    tops = scores.new_full((num_groups,), -torch.inf).scatter_reduce(0, groups, scores.detach(), "amax")
    sums = scores.new_zeros(num_groups).index_add(0, groups, (scores - tops[groups]).exp())
    return sums.log() + tops

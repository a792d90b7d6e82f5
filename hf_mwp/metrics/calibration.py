"""Calibration of the probabilities of a solver's answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..checked_types import checked
from ..options.checks import check_at_least_one
from .glue import shared_ranks


@checked
def calibration_report(probabilities: Sequence[float], correct: Sequence[bool], num_bins: int = 15) -> dict[str, Any]:
    """
    Measure how well the probabilities of answers predict which answers are correct.

    - Expected calibration error: absolute difference between mean probability and accuracy of a bin, averaged over all
      answers. Bins have equal width and include their upper edge; the first bin also includes 0 (Guo et al., On
      Calibration of Modern Neural Networks, ICML 2017, equation 3).
    - AUROC: share of pairs of a correct and a wrong answer in which the correct answer has the higher probability.
      Pairs with equal probabilities count half (Hendrycks and Gimpel, ICLR 2017).
    - Accuracy of the surer half: accuracy of the half of the answers (rounded up) with the highest probabilities. Ties
      at the boundary count with their mean accuracy.

    Args:
        probabilities (`Sequence[float]`): Probability of each answer, 0 if there is no answer.
        correct (`Sequence[bool]`): Whether each answer is correct.
        num_bins (`int`, *optional*, defaults to 15): Number of bins.

    Returns:
        `dict`: `num_problems`, `num_bins`, `expected_calibration_error`, `auroc` (`None` if all answers are correct or
        all are wrong), `surer_half_accuracy`, `num_surer_half` and `bins`. `bins` lists the bins with answers, from
        low to high, as dictionaries with `from`, `to`, `num_problems`, `probability` (mean) and `answer_accuracy`.

    Raises:
        ValueError: There are no answers, the lengths differ, or `num_bins` is below 1.
    """
    check_at_least_one({"num_bins": num_bins}, "num_bins")
    scores, right = np.asarray(probabilities, dtype=float), np.asarray(correct, dtype=bool)
    if scores.shape != right.shape or not len(scores):
        raise ValueError(f"Pass one probability per answer, got {len(right)} answers and {len(scores)} probabilities.")
    edges = np.arange(num_bins + 1) / num_bins
    places = np.digitize(scores, edges[1:-1], right=True)
    bins, error = [], 0.0
    for place in np.unique(places):
        inside = places == place
        probability, accuracy = float(scores[inside].mean()), float(right[inside].mean())
        error += inside.mean() * abs(probability - accuracy)
        counted = {"from": float(edges[place]), "to": float(edges[place + 1]), "num_problems": int(inside.sum())}
        bins.append({**counted, "probability": probability, "answer_accuracy": accuracy})
    # Compute the Mann-Whitney U statistic from the ranks of the correct answers. Equal probabilities share their rank.
    positives, negatives = int(right.sum()), int((~right).sum())
    above = shared_ranks(scores)[right].sum() - positives * (positives + 1) / 2
    auroc = float(above / (positives * negatives)) if positives and negatives else None
    half = (len(scores) + 1) // 2
    last = np.sort(scores)[-half]
    surer, tied = scores > last, scores == last
    surest_right = right[surer].sum() + (half - surer.sum()) * right[tied].mean()
    return {
        "num_problems": len(scores),
        "num_bins": num_bins,
        "expected_calibration_error": float(error),
        "auroc": auroc,
        "surer_half_accuracy": float(surest_right / half),
        "num_surer_half": half,
        "bins": bins,
    }

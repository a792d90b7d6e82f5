"""Calibration of the probabilities of a solver's answers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from hf_mwp.compress.metrics.glue import shared_ranks
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one


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
    scores = np.asarray(probabilities, dtype=float)
    is_correct = np.asarray(correct, dtype=bool)
    if scores.shape != is_correct.shape or not len(scores):
        counts = f"{len(is_correct)} answers and {len(scores)} probabilities"
        raise ValueError(f"Pass one probability per answer, got {counts}.")
    bins = _bins(scores, is_correct, num_bins)
    error = 0.0
    for row in bins:
        error += row["num_problems"] / len(scores) * abs(row["probability"] - row["answer_accuracy"])
    half = (len(scores) + 1) // 2
    return {
        "num_problems": len(scores),
        "num_bins": num_bins,
        "expected_calibration_error": float(error),
        "auroc": _auroc(scores, is_correct),
        "surer_half_accuracy": _accuracy_of_surest(scores, is_correct, half),
        "num_surer_half": half,
        "bins": bins,
    }


def _bins(scores: np.ndarray, is_correct: np.ndarray, num_bins: int) -> list[dict[str, Any]]:
    """Return the bins with answers, from low to high; see [`calibration_report`]."""
    edges = np.arange(num_bins + 1) / num_bins
    bin_of_answer = np.digitize(scores, edges[1:-1], right=True)
    bins = []
    for index in np.unique(bin_of_answer):
        inside = bin_of_answer == index
        bins.append(
            {
                "from": float(edges[index]),
                "to": float(edges[index + 1]),
                "num_problems": int(inside.sum()),
                "probability": float(scores[inside].mean()),
                "answer_accuracy": float(is_correct[inside].mean()),
            }
        )
    return bins


def _auroc(scores: np.ndarray, is_correct: np.ndarray) -> float | None:
    """Return the area under the ROC curve, or `None` if all answers are correct or all are wrong."""
    num_correct = int(is_correct.sum())
    num_wrong = len(is_correct) - num_correct
    if not num_correct or not num_wrong:
        return None
    # Mann-Whitney U statistic from the ranks of the correct answers. Equal probabilities share their rank.
    rank_sum = shared_ranks(scores)[is_correct].sum()
    statistic = rank_sum - num_correct * (num_correct + 1) / 2
    return float(statistic / (num_correct * num_wrong))


def _accuracy_of_surest(scores: np.ndarray, is_correct: np.ndarray, count: int) -> float:
    """Return the accuracy of the `count` surest answers. Ties at the boundary count with their mean accuracy."""
    boundary = np.sort(scores)[-count]
    is_surer = scores > boundary
    is_tied = scores == boundary
    num_tied = count - is_surer.sum()
    num_correct = is_correct[is_surer].sum() + num_tied * is_correct[is_tied].mean()
    return float(num_correct / count)

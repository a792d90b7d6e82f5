"""Metrics of the GLUE benchmark."""

from collections.abc import Sequence

import numpy as np

from ..checked_types import checked


@checked
def share_right(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the accuracy."""
    predictions, labels = _checked(predictions, labels)
    return float((predictions == labels).mean())


@checked
def f1_of_positive(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the F1 score of class 1. Returns 0 if no label and no prediction is 1."""
    found, true = (values == 1 for values in _checked(predictions, labels))
    counted = int(found.sum() + true.sum())
    return 2 * int((found & true).sum()) / counted if counted else 0.0


@checked
def matthews_correlation(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the Matthews correlation of any number of classes (Gorodkin, 2004), or 0 if one side is constant."""
    predictions, labels = _checked(predictions, labels)
    classes = np.union1d(predictions, labels)
    found, true = ((given[:, None] == classes).sum(0).astype(float) for given in (predictions, labels))
    count, right = len(labels), float((predictions == labels).sum())
    spread = (count**2 - found @ found) * (count**2 - true @ true)
    return float((right * count - found @ true) / np.sqrt(spread)) if spread else 0.0


@checked
def spearman_correlation(predictions: Sequence[float], labels: Sequence[float]) -> float:
    """Compute Spearman's rank correlation with ties. Returns 0 if all predictions or all labels are equal."""
    ours, theirs = (shared_ranks(values) - (len(values) + 1) / 2 for values in _checked(predictions, labels))
    spread = np.sqrt((ours @ ours) * (theirs @ theirs))
    return float(ours @ theirs / spread) if spread else 0.0


def shared_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values, starting at 1. Equal values receive their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def _checked(predictions: Sequence, labels: Sequence) -> tuple[np.ndarray, np.ndarray]:
    found, true = np.asarray(predictions), np.asarray(labels)
    if found.ndim != 1 or found.shape != true.shape or not found.size:
        raise ValueError(f"Pass one prediction per label, got the shapes {found.shape} and {true.shape}.")
    return found, true


# Metric functions by their names in reports.
GLUE_FIGURES = {
    "accuracy": share_right,
    "f1": f1_of_positive,
    "matthews": matthews_correlation,
    "spearman": spearman_correlation,
}

"""Metrics of the GLUE benchmark."""

from collections.abc import Sequence

import numpy as np

from hf_mwp.utils.checked_types import checked


@checked
def share_right(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the accuracy."""
    predictions, labels = _checked(predictions, labels)
    return float((predictions == labels).mean())


@checked
def f1_of_positive(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the F1 score of class 1. Returns 0 if no label and no prediction is 1."""
    predictions, labels = _checked(predictions, labels)
    is_predicted = predictions == 1
    is_positive = labels == 1
    total = int(is_predicted.sum() + is_positive.sum())
    if not total:
        return 0.0
    return 2 * int((is_predicted & is_positive).sum()) / total


@checked
def matthews_correlation(predictions: Sequence[int], labels: Sequence[int]) -> float:
    """Compute the Matthews correlation of any number of classes (Gorodkin, 2004), or 0 if one side is constant."""
    predictions, labels = _checked(predictions, labels)
    classes = np.union1d(predictions, labels)
    predicted_counts = (predictions[:, None] == classes).sum(0).astype(float)
    label_counts = (labels[:, None] == classes).sum(0).astype(float)
    total = len(labels)
    num_correct = float((predictions == labels).sum())
    spread = (total**2 - predicted_counts @ predicted_counts) * (total**2 - label_counts @ label_counts)
    if not spread:
        return 0.0
    return float((num_correct * total - predicted_counts @ label_counts) / np.sqrt(spread))


@checked
def spearman_correlation(predictions: Sequence[float], labels: Sequence[float]) -> float:
    """Compute Spearman's rank correlation with ties. Returns 0 if all predictions or all labels are equal."""
    predictions, labels = _checked(predictions, labels)
    mean_rank = (len(labels) + 1) / 2
    predicted_ranks = shared_ranks(predictions) - mean_rank
    label_ranks = shared_ranks(labels) - mean_rank
    spread = np.sqrt((predicted_ranks @ predicted_ranks) * (label_ranks @ label_ranks))
    if not spread:
        return 0.0
    return float(predicted_ranks @ label_ranks / spread)


def shared_ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks of values, starting at 1. Equal values receive their mean rank."""
    _, indices, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return ranks[indices]


def _checked(predictions: Sequence, labels: Sequence) -> tuple[np.ndarray, np.ndarray]:
    predictions = np.asarray(predictions)
    labels = np.asarray(labels)
    if predictions.ndim != 1 or predictions.shape != labels.shape or not predictions.size:
        raise ValueError(f"Pass one prediction per label, got the shapes {predictions.shape} and {labels.shape}.")
    return predictions, labels


# Metric functions by their names in reports.
GLUE_FIGURES = {
    "accuracy": share_right,
    "f1": f1_of_positive,
    "matthews": matthews_correlation,
    "spearman": spearman_correlation,
}

"""Metrics of pretraining, from sums over the tokens of each text."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..data.corpus.pretraining_encoder import KEYWORD, NUMBER
from .pos_tagging import pos_report


# Sum and number of tokens of each mean over tokens.
MEANS = {
    "mlm_loss": ("mlm_loss", "mlm_count"),
    "mlm_accuracy": ("mlm_right", "mlm_count"),
    "mlm_loss_keywords": ("keyword_loss", "keyword_count"),
    "mlm_loss_numbers": ("number_loss", "number_count"),
    "pos_loss": ("pos_loss", "pos_count"),
}
# Sums over the tokens of a text.
STATISTICS = tuple(dict.fromkeys(name for pair in MEANS.values() for name in pair))


def masking_statistics(logits: torch.Tensor, labels: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    """
    Compute sums over the masked tokens of each text, `(batch,)`, by the names in `STATISTICS`.

    Args:
        logits (`torch.Tensor`): Scores, `(batch, length, vocabulary)` or of the labelled tokens alone.
        labels (`torch.Tensor` of shape `(batch, length)`): Ids of the masked tokens, -100 elsewhere.
        classes (`torch.Tensor` of shape `(batch, length)`): Classes of all tokens.
    """
    labelled = labels.ne(-100)
    if logits.dim() == 3:
        logits = logits[labelled]
    rows, gold, kinds = labelled.nonzero()[:, 0], labels[labelled], classes[labelled]
    losses = cross_entropy(logits.float(), gold, reduction="none")
    values = {"mlm_right": logits.argmax(-1).eq(gold).float()}
    for name, counted in {"mlm": gold.ge(0), "keyword": kinds.eq(KEYWORD), "number": kinds.eq(NUMBER)}.items():
        values |= {f"{name}_loss": losses * counted, f"{name}_count": counted.float()}
    empty = losses.new_zeros(len(labels))
    return {name: empty.index_add(0, rows, value) for name, value in values.items()}


def tagging_statistics(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Compute the sums over tokens with a tag; `logits` have the shape `(batch, length, labels)`."""
    losses = cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    return {"pos_loss": losses.sum(1), "pos_count": labels.ne(-100).sum(1).float()}


def summarise_statistics(sums: np.ndarray) -> dict[str, float]:
    """
    Compute means over tokens, if there are any, from sums `(texts, len(STATISTICS))`: `mlm_loss`, `mlm_accuracy`,
    `mlm_loss_keywords`, `mlm_loss_numbers` and `pos_loss`.
    """
    total = dict(zip(STATISTICS, sums.astype(np.float64).sum(axis=0).tolist(), strict=True))
    return {name: total[value] / total[count] for name, (value, count) in MEANS.items() if total[count]}


def tagging_report(predicted: np.ndarray, gold: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Compute [`metrics.pos_report`] of label ids `(texts, tokens)`, -100 in `gold` where there is no word."""
    names = np.array([*labels, None], dtype=object)
    ids = (np.where(gold == -100, len(labels), each) for each in (predicted, gold))
    return pos_report(*(names[each].tolist() for each in ids))

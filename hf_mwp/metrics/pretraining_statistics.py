"""Metrics of pretraining, computed from sums over the tokens of each text."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..data.corpus.pretraining_encoder import KEYWORD, NUMBER
from .pos_tagging import pos_report


# For each mean over tokens, the names of the sum and of the number of tokens.
MEANS = {
    "mlm_loss": ("mlm_loss", "mlm_count"),
    "mlm_accuracy": ("mlm_right", "mlm_count"),
    "mlm_loss_keywords": ("keyword_loss", "keyword_count"),
    "mlm_loss_numbers": ("number_loss", "number_count"),
    "pos_loss": ("pos_loss", "pos_count"),
}
# Names of all sums over the tokens of a text.
STATISTICS = tuple(dict.fromkeys(name for pair in MEANS.values() for name in pair))


def masking_statistics(logits: torch.Tensor, labels: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    """
    Compute the summed loss and the numbers of masked tokens (all, keywords, numbers) of each text, and the number of
    correctly predicted tokens, as tensors of shape `(batch,)` with names from `STATISTICS`.

    Args:
        logits (`torch.Tensor`): Logits of shape `(batch, length, vocabulary)`, or `(labelled tokens, vocabulary)`.
        labels (`torch.Tensor` of shape `(batch, length)`): Original ids of the masked tokens, -100 elsewhere.
        classes (`torch.Tensor` of shape `(batch, length)`): `mask_class` of all tokens.
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
    """Compute the summed loss and the number of tagged tokens of each text from `logits` `(batch, length, labels)`."""
    losses = cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    return {"pos_loss": losses.sum(1), "pos_count": labels.ne(-100).sum(1).float()}


def summarise_statistics(sums: np.ndarray) -> dict[str, float]:
    """
    Compute means over tokens from sums of shape `(texts, len(STATISTICS))`: `mlm_loss`, `mlm_accuracy`,
    `mlm_loss_keywords`, `mlm_loss_numbers` and `pos_loss`. Means over no tokens are left out.
    """
    total = dict(zip(STATISTICS, sums.astype(np.float64).sum(axis=0).tolist(), strict=True))
    return {name: total[value] / total[count] for name, (value, count) in MEANS.items() if total[count]}


def tagging_report(predicted: np.ndarray, gold: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """Compute [`metrics.pos_report`] of label ids `(texts, tokens)`. `gold` is -100 for tokens outside words."""
    names = np.array([*labels, None], dtype=object)
    ids = (np.where(gold == -100, len(labels), each) for each in (predicted, gold))
    return pos_report(*(names[each].tolist() for each in ids))

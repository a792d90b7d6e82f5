"""Figures of an evaluation of pretraining, from sums over the tokens of each text."""

from typing import Any

import numpy as np
import torch
from torch.nn.functional import cross_entropy

from ..data.corpus.pretraining_encoder import KEYWORD, NUMBER
from .pos_tagging import pos_report


# What is counted for each text; `sums` and `counts` of a kind give its mean.
STATISTICS = (
    "mlm_loss",
    "mlm_count",
    "mlm_right",
    "keyword_loss",
    "keyword_count",
    "number_loss",
    "number_count",
    "pos_loss",
    "pos_count",
)


def masking_statistics(logits: torch.Tensor, labels: torch.Tensor, classes: torch.Tensor) -> dict[str, torch.Tensor]:
    """
    Sums over the masked tokens of each text, `(batch,)`, by the names in `STATISTICS`.

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
    one = torch.ones_like(losses)
    keyword, number = kinds.eq(KEYWORD).float(), kinds.eq(NUMBER).float()
    values = {
        "mlm_loss": losses,
        "mlm_count": one,
        "mlm_right": logits.argmax(-1).eq(gold).float(),
        "keyword_loss": losses * keyword,
        "keyword_count": keyword,
        "number_loss": losses * number,
        "number_count": number,
    }
    empty = losses.new_zeros(len(labels))
    return {name: empty.index_add(0, rows, value) for name, value in values.items()}


def tagging_statistics(logits: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """The same for the tokens with a tag; `logits` are of shape `(batch, length, labels)`."""
    losses = cross_entropy(logits.float().flatten(0, 1), labels.flatten(), reduction="none").view(labels.shape)
    return {"pos_loss": losses.sum(1), "pos_count": labels.ne(-100).sum(1).float()}


def summarise_statistics(sums: np.ndarray) -> dict[str, float]:
    """
    Means over tokens, as far as there are such, of sums `(texts, len(STATISTICS))`: `mlm_loss`, `mlm_accuracy`,
    `mlm_loss_keywords`, `mlm_loss_numbers` and `pos_loss`.
    """
    total = dict(zip(STATISTICS, sums.astype(np.float64).sum(axis=0).tolist(), strict=True))
    parts = {
        "mlm_loss": ("mlm_loss", "mlm_count"),
        "mlm_accuracy": ("mlm_right", "mlm_count"),
        "mlm_loss_keywords": ("keyword_loss", "keyword_count"),
        "mlm_loss_numbers": ("number_loss", "number_count"),
        "pos_loss": ("pos_loss", "pos_count"),
    }
    return {name: total[value] / total[count] for name, (value, count) in parts.items() if total[count]}


def tagging_report(predicted: np.ndarray, gold: np.ndarray, labels: list[str]) -> dict[str, Any]:
    """[`metrics.pos_report`] of label ids `(texts, tokens)`, -100 in `gold` where there is no word."""
    names = np.array([*labels, None], dtype=object)
    unlabelled = len(labels)
    texts = []
    for ids in (predicted, gold):
        ids = np.where(gold == -100, unlabelled, ids)
        texts.append([row.tolist() for row in names[ids]])
    return pos_report(*texts)

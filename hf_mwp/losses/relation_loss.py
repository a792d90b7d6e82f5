"""Distillation of the relations between a layer's queries, keys or values."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .state_loss import StateLoss


class RelationLoss(StateLoss):
    r"""
    Purpose: draws relations between tokens in the student towards the teacher's. The vectors of all heads of a layer
    are put side by side and cut anew into relation heads; in each `R = softmax(X Xᵀ / sqrt(width of a head))` over the
    valid tokens, and the loss is `KL(R_teacher || R_student)`, averaged over heads and valid tokens; computed in fp32.

    Args:
        heads (`int`, *optional*, defaults to 1): Relation heads; widths of both models must be multiples of it.

    References:
        - MiniLMv2: https://huggingface.co/papers/2012.15828 (section 3.1; there with 48 heads for a large teacher and
          the sum of queries', keys' and values' relations)
        - MiniLM: https://huggingface.co/papers/2002.10957 (value relations)

    Requirements: Neither widths nor numbers of attention heads need be the same.

    Inputs:
        - student (`torch.Tensor`): `(batch, tokens, width)`, queries, keys or values of all heads of a layer.
        - teacher (`torch.Tensor`): the same but for the width; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations:
        - [`AttentionMSELoss`] compares relations of queries with keys, head by head.
        - [`NSTLoss`] compares products of hidden states without a softmax.

    Example:
        >>> RelationLoss(heads=12)(student_values, teacher_values, mask=batch["attention_mask"])
    """

    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"`heads` must be at least 1, got {heads}.")
        self.heads = heads

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        ours, theirs = self._log_relations(ours, mask), self._log_relations(theirs, mask)
        counted = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1)
        total = torch.where(counted, theirs.exp() * (theirs - ours), 0.0).sum()
        return total / (mask.sum().clamp(min=1) * self.heads)

    def _log_relations(self, vectors: Tensor, mask: Tensor) -> Tensor:
        if vectors.shape[-1] % self.heads:
            raise ValueError(
                f"Vectors of the width {vectors.shape[-1]} cannot be cut into {self.heads} relation heads: give a "
                "number that divides the widths of both models."
            )
        vectors = vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        scores = vectors @ vectors.transpose(-1, -2) / math.sqrt(vectors.shape[-1])
        return scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min).log_softmax(-1)

    citation = """
@inproceedings{wang2021minilmv2,
    title = {{MiniLMv2}: Multi-Head Self-Attention Relation Distillation for Compressing Pretrained Transformers},
    author = {Wenhui Wang and Hangbo Bao and Shaohan Huang and Li Dong and Furu Wei},
    booktitle = {Findings of the Association for Computational Linguistics: ACL-IJCNLP 2021},
    year = {2021}
}
""".strip()

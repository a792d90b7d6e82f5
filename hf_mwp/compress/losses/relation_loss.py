"""Loss on the relations between tokens in a layer's queries, keys or values."""

import math

import torch
from torch import Tensor

from hf_mwp.utils.checked_types import checked

from .state_loss import StateLoss, citation_of


class RelationLoss(StateLoss):
    r"""
    Kullback-Leibler divergence between the token relations of teacher and student. The vectors of all heads of a layer
    are concatenated and split into relation heads. In each relation head,
    `R = softmax(X Xᵀ / sqrt(width of the head))` over the valid tokens. The loss is `KL(R_teacher || R_student)`,
    averaged over heads and valid tokens. Computed in fp32.

    Args:
        heads (`int`, *optional*, defaults to 1): Number of relation heads. It must divide the widths of both models.

    References:
        - MiniLMv2: https://huggingface.co/papers/2012.15828 (section 3.1, with 48 heads for a large teacher and the
          sum of query, key and value relations)
        - MiniLM: https://huggingface.co/papers/2002.10957 (value relations)

    Requirements: Widths and numbers of attention heads may differ.

    Inputs: As in [`HiddenMSELoss`], for the queries, keys or values of all heads of a layer.

    Relations:
        - [`AttentionMSELoss`] compares relations between queries and keys, head by head.
        - [`NSTLoss`] compares products of hidden states without a softmax.

    Example:
        >>> RelationLoss(heads=12)(student_values, teacher_values, mask=batch["attention_mask"])
    """

    @checked
    def __init__(self, heads: int = 1) -> None:
        super().__init__()
        if heads < 1:
            raise ValueError(f"`heads` must be at least 1, got {heads}.")
        self.heads = heads

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        student = self._log_relations(student_hidden, mask)
        teacher = self._log_relations(teacher_hidden, mask)
        pairs = (mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1)
        total = torch.where(pairs, teacher.exp() * (teacher - student), 0.0).sum()
        return total / (mask.sum().clamp(min=1) * self.heads)

    def _log_relations(self, vectors: Tensor, mask: Tensor) -> Tensor:
        if vectors.shape[-1] % self.heads:
            raise ValueError(f"Vectors of width {vectors.shape[-1]} cannot be split into {self.heads} relation heads.")
        vectors = vectors.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        scores = vectors @ vectors.transpose(-1, -2) / math.sqrt(vectors.shape[-1])
        return scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min).log_softmax(-1)

    citation = citation_of("wang2021minilmv2")

"""Distillation of how alike pairs of representations are."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .state_loss import StateLoss


class CKDPairLoss(StateLoss):
    r"""
    Purpose: draws relations of pairs in the student towards the teacher's: squared difference of the cosines between
    two items' vectors, averaged over the pairs of different valid items; computed in fp32. The items are tokens of a
    layer (word relation) or a token's layers (layer transforming relation).

    References:
        - Distilling Linguistic Context for Language Model Compression: https://huggingface.co/papers/2109.08359
          (contextual knowledge distillation, the pair-wise part; of its measures the cosine, which no scale changes)

    Requirements: Widths may differ: no projection is needed.

    Inputs:
        - student (`torch.Tensor`): `(batch, items, width)`.
        - teacher (`torch.Tensor`): the same but for the width; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, items)`, true or non-zero where an item counts.

    Relations:
        - [`CKDTripleLoss`] is its other part.
        - [`NSTLoss`] compares products, and so lengths as well.

    Example:
        >>> CKDPairLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        difference = _cosines(ours) - _cosines(theirs)
        # Each pair stands there twice; an item with itself adds nothing.
        own = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        return difference.masked_fill(own, 0.0).square().sum() / (2 * self.count(mask)).clamp(min=1)

    @staticmethod
    def count(mask: Tensor) -> Tensor:
        """Over how many pairs a batch is averaged; batches of one step are weighted by it."""
        items = mask.bool().sum(-1)
        return (items * (items - 1) // 2).sum()

    citation = """
@inproceedings{park2021distilling,
    title = {Distilling Linguistic Context for Language Model Compression},
    author = {Geondo Park and Gyeongman Kim and Eunho Yang},
    booktitle = {Proceedings of the 2021 Conference on Empirical Methods in Natural Language Processing},
    year = {2021}
}
""".strip()


def _cosines(vectors: Tensor) -> Tensor:
    vectors = nn.functional.normalize(vectors, dim=-1)
    return vectors @ vectors.transpose(1, 2)

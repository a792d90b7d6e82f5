"""Loss on the cosines between pairs of representations."""

import torch
from torch import Tensor

from .state_loss import StateLoss, citation_of, directions


class CKDPairLoss(StateLoss):
    r"""
    Squared difference between student and teacher in the cosine between the vectors of two items, averaged over all
    pairs of different valid items. Computed in fp32. The items are the tokens of a layer (word relation) or the layers
    of a token (layer transforming relation).

    References: Distilling Linguistic Context for Language Model Compression: https://huggingface.co/papers/2109.08359
    (contextual knowledge distillation, pair-wise part, with the cosine as scale-invariant measure)

    Requirements: Widths may differ, and no projection is needed.

    Inputs:
        - student (`torch.Tensor`): `(batch, items, width)`.
        - teacher (`torch.Tensor`): the same shape except for the width; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, items)`, true or non-zero for items that count.

    Relations:
        - [`CKDTripleLoss`] is the triple-wise part.
        - [`NSTLoss`] compares products, which also depend on the lengths of the vectors.

    Example:
        >>> CKDPairLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        difference = _cosines(student_hidden) - _cosines(teacher_hidden)
        # Each pair occurs twice. An item paired with itself does not count.
        diagonal = torch.eye(mask.shape[1], dtype=torch.bool, device=mask.device)
        return difference.masked_fill(diagonal, 0.0).square().sum() / (2 * self.count(mask)).clamp(min=1)

    @staticmethod
    def count(mask: Tensor) -> Tensor:
        """Return the number of pairs that a batch is averaged over. Batches of one step are weighted by it."""
        items = mask.bool().sum(-1)
        return (items * (items - 1) // 2).sum()

    citation = citation_of("park2021distilling")


def _cosines(vectors: Tensor) -> Tensor:
    vectors = directions(vectors)
    return vectors @ vectors.transpose(1, 2)

"""Distillation of how triples of representations lie to each other."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .ckd_pair_loss import CKDPairLoss
from .state_loss import StateLoss


class CKDTripleLoss(StateLoss):
    r"""
    Purpose: draws relations of triples in the student towards the teacher's: squared difference of the cosines of the
    angle at one item between two others, averaged over the triples of different valid items; computed in fp32. The
    items are tokens of a layer (word relation) or a token's layers (layer transforming relation).

    Args:
        window (`int`, *optional*):
            The two others stand at most so many places from the item at which the angle is; anywhere if `None`. For
            tokens give one: memory grows with its square.

    References:
        - Distilling Linguistic Context for Language Model Compression: https://huggingface.co/papers/2109.08359
          (contextual knowledge distillation, the triple-wise part)

    Requirements: Widths may differ: no projection is needed.

    Inputs: As in [`CKDPairLoss`].

    Relations: [`CKDPairLoss`] is its other part.

    Example:
        >>> CKDTripleLoss(window=2)(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__()
        if window is not None and window < 1:
            raise ValueError(f"`window` must be at least 1, got {window}.")
        self.window = window

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        places, near = self._neighbours(mask)
        difference = _angles(ours, places) - _angles(theirs, places)
        # Each triple stands there twice; a neighbour with itself adds nothing.
        counted = near.unsqueeze(-1) & near.unsqueeze(-2)
        counted = counted & ~torch.eye(near.shape[-1], dtype=torch.bool, device=mask.device)
        return torch.where(counted, difference, 0.0).square().sum() / (2 * self.count(mask)).clamp(min=1)

    def count(self, mask: Tensor) -> Tensor:
        """Over how many triples a batch is averaged; batches of one step are weighted by it."""
        near = self._neighbours(mask)[1].sum(-1)
        return (near * (near - 1) // 2).sum()

    def _neighbours(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Places `(items, neighbours)` near each item, and whether both are valid, `(batch, items, neighbours)`."""
        count = mask.shape[1]
        reach = max(count - 1, 1) if self.window is None else self.window
        steps = torch.arange(-reach, reach, device=mask.device)
        places = torch.arange(count, device=mask.device).unsqueeze(1) + steps + (steps >= 0)
        inside = (places >= 0) & (places < count)
        places = places.clamp(0, count - 1)
        mask = mask.bool()
        return places, mask[:, places] & mask.unsqueeze(-1) & inside

    citation = CKDPairLoss.citation


def _angles(vectors: Tensor, places: Tensor) -> Tensor:
    """Cosines `(batch, items, neighbours, neighbours)` of the angle at each item between two of its neighbours."""
    edges = nn.functional.normalize(vectors[:, places] - vectors.unsqueeze(2), dim=-1)
    return edges @ edges.transpose(-1, -2)

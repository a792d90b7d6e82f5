"""Loss on the angles within triples of representations."""

import torch
from torch import Tensor

from hf_mwp.utils.checked_types import checked

from .ckd_pair_loss import CKDPairLoss
from .state_loss import StateLoss, directions


class CKDTripleLoss(StateLoss):
    r"""
    Squared difference between student and teacher in the cosine of the angle at one item between two other items,
    averaged over all triples of different valid items. Computed in fp32. The items are the tokens of a layer (word
    relation) or the layers of a token (layer transforming relation).

    Args:
        window (`int`, *optional*): Maximum distance in positions of the two other items from the item at the angle.
            Unlimited if `None`. Set it for tokens, since memory grows with its square.

    References: Distilling Linguistic Context for Language Model Compression: https://huggingface.co/papers/2109.08359
    (contextual knowledge distillation, triple-wise part)

    Requirements: Widths may differ, and no projection is needed.

    Inputs: As in [`CKDPairLoss`].

    Relations: [`CKDPairLoss`] is the pair-wise part.

    Example:
        >>> CKDTripleLoss(window=2)(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    @checked
    def __init__(self, window: int | None = None) -> None:
        super().__init__()
        if window is not None and window < 1:
            raise ValueError(f"`window` must be at least 1, got {window}.")
        self.window = window

    def compare(self, ours: Tensor, theirs: Tensor, mask: Tensor) -> Tensor:
        places, near = self._neighbours(mask)
        difference = _angles(ours, places) - _angles(theirs, places)
        # Each triple occurs twice. A neighbour paired with itself does not count.
        counted = near.unsqueeze(-1) & near.unsqueeze(-2)
        counted = counted & ~torch.eye(near.shape[-1], dtype=torch.bool, device=mask.device)
        return torch.where(counted, difference, 0.0).square().sum() / (2 * self.count(mask)).clamp(min=1)

    def count(self, mask: Tensor) -> Tensor:
        """Return the number of triples that a batch is averaged over. Batches of one step are weighted by it."""
        near = self._neighbours(mask)[1].sum(-1)
        return (near * (near - 1) // 2).sum()

    def _neighbours(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions `(items, neighbours)` near each item, and the mask `(batch, items, neighbours)`."""
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
    """Return the cosines `(batch, items, neighbours, neighbours)` of angles at each item between two neighbours."""
    # An edge between equal vectors has no direction but rounding errors.
    sizes = vectors.norm(dim=-1, keepdim=True).unsqueeze(2)
    edges = directions(vectors[:, places] - vectors.unsqueeze(2), sizes)
    return edges @ edges.transpose(-1, -2)

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

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        positions, near = self._neighbours(mask)
        difference = _angles(student_hidden, positions) - _angles(teacher_hidden, positions)
        # Each triple occurs twice. A neighbour paired with itself does not count.
        diagonal = torch.eye(near.shape[-1], dtype=torch.bool, device=mask.device)
        triples = near.unsqueeze(-1) & near.unsqueeze(-2) & ~diagonal
        return torch.where(triples, difference, 0.0).square().sum() / (2 * self.count(mask)).clamp(min=1)

    def count(self, mask: Tensor) -> Tensor:
        """Return the number of triples that a batch is averaged over. Batches of one step are weighted by it."""
        _, near = self._neighbours(mask)
        num_neighbours = near.sum(-1)
        return (num_neighbours * (num_neighbours - 1) // 2).sum()

    def _neighbours(self, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Return the positions `(items, neighbours)` near each item, and the mask `(batch, items, neighbours)`."""
        num_items = mask.shape[1]
        window = self.window
        if window is None:
            window = max(num_items - 1, 1)
        # Distances from -window to window without 0, since an item is not its own neighbour.
        distances = torch.arange(-window, window, device=mask.device)
        distances = distances + (distances >= 0)
        positions = torch.arange(num_items, device=mask.device).unsqueeze(1) + distances
        inside = (positions >= 0) & (positions < num_items)
        positions = positions.clamp(0, num_items - 1)
        mask = mask.bool()
        return positions, mask[:, positions] & mask.unsqueeze(-1) & inside

    citation = CKDPairLoss.citation


def _angles(vectors: Tensor, positions: Tensor) -> Tensor:
    """Return the cosines `(batch, items, neighbours, neighbours)` of angles at each item between two neighbours."""
    # An edge between equal vectors has no direction but rounding errors.
    sizes = vectors.norm(dim=-1, keepdim=True).unsqueeze(2)
    edges = directions(vectors[:, positions] - vectors.unsqueeze(2), sizes)
    return edges @ edges.transpose(-1, -2)

"""Distillation of hidden states of any width by the distance of their Gram matrices."""

from __future__ import annotations

from torch import Tensor

from .product_loss import ProductLoss


EPSILON = 1e-12  # least squared norm of states that are divided by it


class GramLoss(ProductLoss):
    r"""
    Purpose: draws the similarities between all tokens of a batch in the student towards the teacher's:
    `||X Xᵀ - Y Yᵀ||_F²` of the states, centred over the valid tokens and divided by their Frobenius norms. No matrix
    of all pairs of tokens is made where the widths are smaller. Computed in fp32, or fp64 for fp64 states.

    References:
        - Bhattarai et al., Knowledge distillation through geometry-aware representational alignment:
          https://huggingface.co/papers/2509.25253

    Requirements: At least three valid tokens in a batch. Widths may differ.

    Inputs: As in [`HiddenMSELoss`], of any widths.

    Relations: [`CKALoss`] divides the same products, where this loss subtracts them; [`NSTLoss`] compares them within
    each text, uncentred.

    Example:
        >>> GramLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, our_size: Tensor, their_size: Tensor) -> Tensor:
        """Return `||X Xᵀ - Y Yᵀ||²` multiplied out, so that no matrix of all pairs of tokens is needed."""
        # States without any variance count as zero.
        ours_scale, theirs_scale = (each.clamp(min=EPSILON).reciprocal() for each in (our_size, their_size))
        own = ours * ours_scale.square() + theirs * theirs_scale.square()
        return own - 2 * cross * ours_scale * theirs_scale

    citation = """
@misc{bhattarai2025knowledge,
    title = {Knowledge distillation through geometry-aware representational alignment},
    author = {Prajjwal Bhattarai and Mohammad Amjad and Dmytro Zhylko and Tuka Alhanai},
    year = {2025},
    eprint = {2509.25253},
    archivePrefix = {arXiv}
}
""".strip()

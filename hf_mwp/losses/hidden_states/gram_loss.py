"""Loss on hidden states of any width: distance between Gram matrices."""

from torch import Tensor

from ..state_loss import citation_of
from .product_loss import ProductLoss


EPSILON = 1e-12  # minimum of the squared norms in denominators


class GramLoss(ProductLoss):
    r"""
    Squared distance `||X Xᵀ - Y Yᵀ||_F²` between the similarities of all tokens of a batch in student and teacher. `X`
    and `Y` are the hidden states, centred over the valid tokens and divided by their Frobenius norms. If there are
    more tokens than features, no matrix of all token pairs is computed. Computed in fp32, or fp64 for fp64 states.

    References: Bhattarai et al., Knowledge distillation through geometry-aware representational alignment:
    https://huggingface.co/papers/2509.25253

    Requirements: At least three valid tokens in a batch.

    Inputs: As in [`HiddenMSELoss`]. Widths may differ.

    Relations: [`CKALoss`] divides the same products instead of subtracting them. [`NSTLoss`] compares uncentred
    products within each text.

    Example:
        >>> GramLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, our_size: Tensor, their_size: Tensor) -> Tensor:
        """Return `||X Xᵀ - Y Yᵀ||²`, expanded so that no matrix of all token pairs is needed."""
        # States without variance count as zero.
        ours_scale, theirs_scale = (each.clamp(min=EPSILON).reciprocal() for each in (our_size, their_size))
        own = ours * ours_scale.square() + theirs * theirs_scale.square()
        return own - 2 * cross * ours_scale * theirs_scale

    citation = citation_of("bhattarai2025knowledge")

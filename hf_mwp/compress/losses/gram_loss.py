"""Loss on hidden states of any width: distance between Gram matrices."""

from torch import Tensor

from .product_loss import ProductLoss
from .state_loss import citation_of


class GramLoss(ProductLoss):
    r"""
    Squared distance `||X Xᵀ - Y Yᵀ||_F²` between the similarities of all tokens of a batch in student and teacher. `X`
    and `Y` are the hidden states, centred over the valid tokens and divided by their Frobenius norms. If there are
    more tokens than features, no matrix of all token pairs is computed. Computed in fp32, or fp64 for fp64 states.
    Orthogonal maps and isotropic scaling of either side do not change the loss. States that hardly differ between
    tokens (by less than a thousandth of their norm) are scaled up less, so that gradients stay bounded.

    References: Bhattarai et al., Knowledge distillation through geometry-aware representational alignment:
    https://huggingface.co/papers/2509.25253

    Requirements: At least three valid tokens in a batch.

    Inputs: As in [`HiddenMSELoss`]. Widths may differ.

    Relations: [`CKALoss`] divides the same products instead of subtracting them. [`NSTLoss`] compares uncentred
    products within each text.

    Example:
        >>> GramLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    def of_products(self, cross: Tensor, student: Tensor, teacher: Tensor) -> Tensor:
        """Return `||X Xᵀ - Y Yᵀ||²`, expanded so that no matrix of all token pairs is needed."""
        return student + teacher - 2 * cross

    citation = citation_of("bhattarai2025knowledge")

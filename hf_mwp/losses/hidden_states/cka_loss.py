"""Loss on hidden states of any width: centred kernel alignment."""

from typing import NamedTuple

import torch
from torch import Tensor

from ...checked_types import checked
from ..precision import without_autocast
from ..state_loss import citation_of, masked
from .product_loss import MIN_ROWS, ProductLoss, centred_rows, safe_sqrt


EPSILON = 1e-8  # as in the authors' implementation


class CKAStatistics(NamedTuple):
    """Sums over tokens, in fp64, that determine the linear CKA of two models. Sums of several batches can be added."""

    rows: Tensor
    student_sum: Tensor
    teacher_sum: Tensor
    student_student: Tensor
    teacher_teacher: Tensor
    student_teacher: Tensor


class CKALoss(ProductLoss):
    r"""
    One minus the square root of linear centred kernel alignment (CKA) between the hidden states of student and
    teacher: `1 - ||Σ_TS||_F / sqrt(||Σ_TT||_F ||Σ_SS||_F)`, where `Σ_XY` is the covariance of the states over the
    valid tokens of the batch. Widths may differ, and no projection is needed. Orthogonal maps and isotropic scaling of
    either side do not change the loss. Computed in fp32 (fp64 for fp64 states), also under autocast.

    The loss depends on the number of tokens. With few tokens, unrelated states look alike:

    | tokens | 32 | 256 | 2,048 |
    | --- | ---: | ---: | ---: |
    | linear CKA, square root, of random states of the widths 768 and 312 | 0.97 | 0.80 | 0.44 |

    `unbiased=True` removes this bias; [`CKALoss.statistics`] lets a trainer compute the loss over several batches.

    Args:
        squared (`bool`, *optional*, defaults to `False`): Return one minus linear CKA, without the square root.
        unbiased (`bool`, *optional*, defaults to `False`): Compute CKA from the unbiased estimator HSIC₁. Values below
            zero count as zero under the root.

    References:
        - Dasgupta and Cohn, Improving Language Model Distillation through Hidden State Matching (ICLR 2025):
          https://openreview.net/forum?id=IcVSKhVpKu
        - Kornblith et al., Similarity of Neural Network Representations Revisited:
          https://huggingface.co/papers/1905.00414 (linear CKA)
        - Song et al., Feature Selection via Dependence Maximization (JMLR 2012), equation 4 (HSIC₁)

    Requirements: At least three valid tokens in a batch, four if `unbiased`. With two, the loss would be zero for all
    states.

    Inputs: As in [`HiddenMSELoss`]. Widths may differ.

    Relations:
        - [`GramLoss`] and [`ProcrustesLoss`] are distances between the same centred states.
        - [`NSTLoss`] compares products of tokens within each text, uncentred.
        - [`HiddenMSELoss`] needs the same width in both models, or a learned projection.

    Example:
        >>> CKALoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    statistics_class = CKAStatistics

    @checked
    def __init__(self, squared: bool = False, unbiased: bool = False) -> None:
        super().__init__()
        self.squared, self.unbiased, self.in_groups = squared, unbiased, not unbiased
        self.min_rows = 4 if unbiased else MIN_ROWS

    def product(self, first: Tensor, second: Tensor, number: Tensor) -> Tensor:
        """Return the squared norm of the product, or HSIC₁ of linear kernels if `unbiased`."""
        product = super().product(first, second, number)
        if not self.unbiased:
            return product
        a, b = first.square().sum(1), second.square().sum(1)
        both = (a * b).sum()
        # The sums of the kernels' columns without the diagonal are -a and -b, since centred rows add up to zero.
        product = product - both + a.sum() * b.sum() / ((number - 1) * (number - 2)).clamp(min=1)
        return (product - 2 * both / (number - 2).clamp(min=1)) / (number * (number - 3)).clamp(min=1)

    def statistics(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor | None = None) -> CKAStatistics:
        """Return the sums from which [`CKALoss.from_statistics`] computes the loss, also added over batches. Raises
        `ValueError` if `unbiased=True`, since HSIC₁ is not determined by sums over tokens."""
        if self.unbiased:
            raise ValueError("Unbiased CKA cannot be computed over several batches. Set `unbiased=False`.")
        [ours], [theirs], mask = self.check(student_hidden, teacher_hidden, mask)
        ours, theirs = masked(ours, mask), masked(theirs, mask)
        sums = [states.flatten(0, 1).double().sum(0) for states in (ours, theirs)]
        with without_autocast(mask):
            ours, theirs, number = centred_rows(ours, theirs, mask)
            number = number.double()
            # Add the means back in fp64, so that subtracting them later loses no precision.
            products = [(ours, ours, 0, 0), (theirs, theirs, 1, 1), (ours, theirs, 0, 1)]
            raw = [(x.T @ y).double() + torch.outer(sums[i], sums[j]) / number.clamp(min=1) for x, y, i, j in products]
        return CKAStatistics(number, *sums, *raw)

    def from_statistics(self, statistics: CKAStatistics) -> Tensor:
        """Return the loss of all batches whose statistics were added, as if they were one batch."""
        rows, student, teacher, ours, theirs, cross = statistics
        number = rows.clamp(min=1)
        products = ((cross, student, teacher), (ours, student, student), (theirs, teacher, teacher))
        centred = (raw - torch.outer(x, y) / number for raw, x, y in products)
        return self.of_products(*(each.square().sum() for each in centred))

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, *sizes: Tensor) -> Tensor:
        """Return the loss from the squared norms of the three covariances, or from three HSIC₁ values."""
        scale = (safe_sqrt(ours) + EPSILON) * (safe_sqrt(theirs) + EPSILON)
        return 1 - cross / scale if self.squared else 1 - safe_sqrt(cross) / scale.sqrt()

    citation = citation_of("dasgupta2025improving")

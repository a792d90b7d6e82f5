"""Distillation of hidden states of any width by centred kernel alignment."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from .centred_rows import centred_rows, safe_sqrt
from .product_loss import ProductLoss
from .state_loss import without_autocast


EPSILON = 1e-8  # as in the authors' program


class CKAStatistics(NamedTuple):
    """
    Sums over rows that determine the linear CKA of two states. They are additive: those of a large batch are the sums
    of those of its parts, over accumulation steps and processes. In fp64.
    """

    rows: Tensor
    student_sum: Tensor
    teacher_sum: Tensor
    student_student: Tensor
    teacher_teacher: Tensor
    student_teacher: Tensor


class CKALoss(ProductLoss):
    r"""
    Purpose: draws the geometry of the student's hidden states towards the teacher's, with neither a projection nor
    equal widths: `1 - ||Σ_TS||_F / sqrt(||Σ_TT||_F ||Σ_SS||_F)`, where `Σ_XY` is the covariance of the states over the
    valid tokens of the batch. This is one minus the square root of linear CKA. Orthogonal maps and isotropic scaling
    of either side do not change it. Computed in fp32, or fp64 for fp64 states, under autocast, too.

    The value depends on how many tokens it is computed over: unrelated states look alike if the tokens are few.

    | tokens | 32 | 256 | 2,048 |
    | --- | ---: | ---: | ---: |
    | linear CKA, square root, of random states of the widths 768 and 312 | 0.97 | 0.80 | 0.44 |

    `unbiased=True` removes this bias; [`CKALoss.statistics`] lets a trainer compute the loss over several batches.

    Args:
        squared (`bool`, *optional*, defaults to `False`): One minus linear CKA, without the root.
        unbiased (`bool`, *optional*, defaults to `False`): CKA from the unbiased estimator HSIC₁, of at least four
            tokens. Values below zero count as zero under the root.

    References:
        - Dasgupta and Cohn, Improving Language Model Distillation through Hidden State Matching (ICLR 2025):
          https://openreview.net/forum?id=IcVSKhVpKu
        - Kornblith et al., Similarity of Neural Network Representations Revisited:
          https://huggingface.co/papers/1905.00414 (linear CKA)
        - Song et al., Feature Selection via Dependence Maximization (JMLR 2012), equation 4 (HSIC₁)

    Requirements: At least three valid tokens in a batch; with two the loss is zero for all states.

    Inputs: As in [`HiddenMSELoss`], of any widths.

    Relations:
        - [`GramLoss`] and [`ProcrustesLoss`] are distances between the same centred matrices.
        - [`NSTLoss`] compares products of tokens within each text, without centring.
        - [`HiddenMSELoss`] needs equal widths, or a learned projection.

    Example:
        >>> CKALoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    statistics_class = CKAStatistics

    def __init__(self, squared: bool = False, unbiased: bool = False) -> None:
        super().__init__()
        self.squared, self.unbiased, self.in_groups = squared, unbiased, not unbiased

    def product(self, first: Tensor, second: Tensor, number: Tensor) -> Tensor:
        """See [`ProductLoss.product`]; if `unbiased`, HSIC₁ of linear kernels, without a matrix of pairs of rows."""
        product = super().product(first, second, number)
        if not self.unbiased:
            return product
        a, b = first.square().sum(1), second.square().sum(1)
        both = (a * b).sum()
        # The sums of the kernels' columns without the diagonal are -a and -b, since centred rows add up to zero.
        product = product - both + a.sum() * b.sum() / ((number - 1) * (number - 2)).clamp(min=1)
        return (product - 2 * both / (number - 2).clamp(min=1)) / (number * (number - 3)).clamp(min=1)

    def statistics(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor | None = None) -> CKAStatistics:
        """
        Return the sums from which [`CKALoss.from_statistics`] computes the loss. Sums of several batches can be added.

        Raises:
            ValueError: `unbiased=True`, whose products are no sums over rows.
        """
        if self.unbiased:
            raise ValueError("Unbiased CKA cannot be pooled over batches: set `unbiased=False`.")
        [ours], [theirs], mask = self.prepare(student_hidden, teacher_hidden, mask)
        sums = [states.flatten(0, 1).double().sum(0) for states in (ours, theirs)]
        with without_autocast(mask):
            ours, theirs, number = centred_rows(ours, theirs, mask)
            number = number.double()
            # Means are added back in fp64, where they cancel again without loss.
            products = [(ours, ours, 0, 0), (theirs, theirs, 1, 1), (ours, theirs, 0, 1)]
            raw = [(x.T @ y).double() + torch.outer(sums[i], sums[j]) / number.clamp(min=1) for x, y, i, j in products]
        return CKAStatistics(number, *sums, *raw)

    def from_statistics(self, statistics: CKAStatistics) -> Tensor:
        """Return the loss of the batches whose statistics were added up, as if they were one."""
        number = statistics.rows.clamp(min=1)
        ours, theirs = statistics.student_sum, statistics.teacher_sum
        products = [
            (raw - torch.outer(x, y) / number).square().sum()
            for raw, x, y in (
                (statistics.student_teacher, ours, theirs),
                (statistics.student_student, ours, ours),
                (statistics.teacher_teacher, theirs, theirs),
            )
        ]
        return self.of_products(*products)

    def of_products(self, cross: Tensor, ours: Tensor, theirs: Tensor, *sizes: Tensor) -> Tensor:
        """Return the loss from the squared norms of the three covariances, or from three values of HSIC₁."""
        scale = (safe_sqrt(ours) + EPSILON) * (safe_sqrt(theirs) + EPSILON)
        return 1 - cross / scale if self.squared else 1 - safe_sqrt(cross) / scale.sqrt()

    citation = """
@inproceedings{dasgupta2025improving,
    title = {Improving Language Model Distillation through Hidden State Matching},
    author = {Sayantan Dasgupta and Trevor Cohn},
    booktitle = {International Conference on Learning Representations},
    year = {2025}
}
""".strip()

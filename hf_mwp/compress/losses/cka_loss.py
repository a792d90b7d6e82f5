"""Loss on hidden states of any width: centred kernel alignment."""

from typing import NamedTuple

import torch
from torch import Tensor

from hf_mwp.utils.checked_types import checked

from .precision import without_autocast
from .product_loss import MIN_ROWS, ProductLoss, centred_rows, check_rows, of_rows, safe_sqrt, unit_scale
from .state_loss import citation_of, masked


# Minimum of the squared norm of `XᵀX` for states of norm 1. It is at least one over the rank, so that only collapsed
# states, whose norm is smaller, are below.
LEAST_NORM = 1e-6
# Below this unbiased CKA, a linear function replaces the square root, whose slope at zero is infinite.
LINEAR_BELOW = 1e-3


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
    either side do not change the loss. States that hardly differ between tokens (by less than a thousandth of their
    norm) count as less similar, so that gradients stay bounded. Computed in fp32 (fp64 for fp64 states), also under
    autocast.

    The loss depends on the number of tokens. With few tokens, unrelated states look alike:

    | tokens | 32 | 256 | 2,048 |
    | --- | ---: | ---: | ---: |
    | linear CKA, square root, of random states of the widths 768 and 312 | 0.97 | 0.80 | 0.44 |

    `unbiased=True` removes this bias; [`CKALoss.statistics`] lets a trainer compute the loss over several batches.

    Args:
        squared (`bool`, *optional*, defaults to `False`): Return one minus linear CKA, without the square root.
        unbiased (`bool`, *optional*, defaults to `False`): Compute CKA from the unbiased estimator HSIC₁, which is
            negative for about half of the batches of unrelated states. A negative value keeps its sign under the root,
            `-sqrt(-x)`, and the root is linear within ±0.001, so that all batches have a bounded gradient.

    References:
        - Dasgupta and Cohn, Improving Language Model Distillation through Hidden State Matching (ICLR 2025):
          https://openreview.net/forum?id=IcVSKhVpKu
        - Kornblith et al., Similarity of Neural Network Representations Revisited:
          https://huggingface.co/papers/1905.00414 (linear CKA)
        - Song et al., Feature Selection via Dependence Maximization (JMLR 2012), equation 4 (HSIC₁)

    Requirements: At least three valid tokens in a batch, four if `unbiased`. With two, the loss would be zero for all
    states. With fewer, `ValueError` on the CPU; on accelerators, which are not waited for, the loss is NaN with a zero
    gradient. Only the sum of the batches needs so many tokens if their `statistics` are added.

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
        self.squared = squared
        self.unbiased = unbiased
        self.in_groups = not unbiased
        self.min_rows = 4 if unbiased else MIN_ROWS

    def product(self, first: Tensor, second: Tensor, number: Tensor) -> Tensor:
        """Return the squared norm of the product, or a multiple of HSIC₁ of linear kernels if `unbiased`."""
        product = super().product(first, second, number)
        if not self.unbiased:
            return product
        a = first.square().sum(1)
        b = second.square().sum(1)
        diagonal = (a * b).sum()
        # The sums of the kernels' columns without the diagonal are -a and -b, since centred rows add up to zero.
        product = product - diagonal + a.sum() * b.sum() / ((number - 1) * (number - 2)).clamp(min=1)
        # The factor `1 / (n (n - 3))` of HSIC₁ is the same in numerator and denominator of CKA.
        return product - 2 * diagonal / (number - 2).clamp(min=1)

    def statistics(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor | None = None) -> CKAStatistics:
        """Return the sums from which [`CKALoss.from_statistics`] computes the loss, also added over batches. Raises
        `ValueError` if `unbiased=True`, since HSIC₁ is not determined by sums over tokens."""
        if self.unbiased:
            raise ValueError("Unbiased CKA cannot be computed over several batches. Set `unbiased=False`.")
        [student], [teacher], mask = self.check(student_hidden, teacher_hidden, mask)
        student = masked(student, mask)
        teacher = masked(teacher, mask)
        student_sum = student.flatten(0, 1).double().sum(0)
        teacher_sum = teacher.flatten(0, 1).double().sum(0)
        with without_autocast(mask):
            # A batch may have any number of tokens, since only the sums over all batches are used.
            number = mask.sum()
            student, _ = centred_rows(student, mask, number)
            teacher, _ = centred_rows(teacher, mask, number)
            number = number.double()
            divisor = number.clamp(min=1)
            # Add the means back in fp64, so that subtracting them later loses no precision.
            student_student = (student.T @ student).double() + torch.outer(student_sum, student_sum) / divisor
            teacher_teacher = (teacher.T @ teacher).double() + torch.outer(teacher_sum, teacher_sum) / divisor
            student_teacher = (student.T @ teacher).double() + torch.outer(student_sum, teacher_sum) / divisor
        return CKAStatistics(number, student_sum, teacher_sum, student_student, teacher_teacher, student_teacher)

    def from_statistics(self, statistics: CKAStatistics) -> Tensor:
        """Return the loss of all batches whose statistics were added, as if they were one batch. Raises `ValueError`
        if all batches together have too few tokens."""
        rows, student_sum, teacher_sum, student, teacher, cross = statistics
        check_rows(rows.detach(), self.min_rows, "step")
        # Centre the products. Their traces are the squared norms of the states.
        number = rows.clamp(min=1)
        student_total = student.trace()
        teacher_total = teacher.trace()
        student = student - torch.outer(student_sum, student_sum) / number
        teacher = teacher - torch.outer(teacher_sum, teacher_sum) / number
        cross = cross - torch.outer(student_sum, teacher_sum) / number
        # Divide the states by their norms.
        student_scale = unit_scale(student.trace(), student_total)
        teacher_scale = unit_scale(teacher.trace(), teacher_total)
        cross = cross / (student_scale * teacher_scale).sqrt()
        student = student / student_scale
        teacher = teacher / teacher_scale
        loss = self.of_products(cross.square().sum(), student.square().sum(), teacher.square().sum())
        return of_rows(loss, rows, self.min_rows)

    def of_products(self, cross: Tensor, student: Tensor, teacher: Tensor) -> Tensor:
        """Return the loss from the squared norms of the three covariances, or from three multiples of HSIC₁."""
        scale = (student.clamp(min=LEAST_NORM) * teacher.clamp(min=LEAST_NORM)).sqrt()
        if self.squared:
            return 1 - cross / scale
        if self.unbiased:
            return 1 - _signed_root(cross / scale)
        return 1 - safe_sqrt(cross) / scale.sqrt()

    citation = citation_of("dasgupta2025improving")


def _signed_root(value: Tensor) -> Tensor:
    """Return `sign(x) sqrt(|x|)`, linear near zero."""
    size = value.abs().clamp(min=LINEAR_BELOW)
    return value / size.sqrt()

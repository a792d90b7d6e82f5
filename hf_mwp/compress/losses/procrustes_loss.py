"""Loss on hidden states of any width: Procrustes distance."""

import torch
from torch import Tensor

from .gram_loss import GramLoss
from .product_loss import MIN_ROWS, centred_rows, check_rows, of_rows, unit_rows
from .state_loss import StateLoss


class ProcrustesLoss(StateLoss):
    r"""
    Squared distance between the hidden states of student and teacher after the best rotation: `2 - 2 ||Xᵀ Y||_*`
    (nuclear norm). `X` and `Y` are the states, centred over the valid tokens and divided by their Frobenius norms. The
    rotation is computed without a gradient, and directions without variance receive no gradient, so that gradients
    stay finite for dead features. States that hardly differ between tokens are scaled as in [`GramLoss`]. Computed in
    fp32, or fp64 for fp64 states.

    References: Bhattarai et al., Knowledge distillation through geometry-aware representational alignment:
    https://huggingface.co/papers/2509.25253

    Requirements: At least three valid tokens in a batch.

    Inputs: As in [`HiddenMSELoss`]. Widths may differ.

    Relations: [`CKALoss`] and [`GramLoss`] compare the same states without a singular value decomposition, which is
    faster.

    Example:
        >>> ProcrustesLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    min_rows = MIN_ROWS  # minimum number of valid tokens

    def compare(self, student_hidden: Tensor, teacher_hidden: Tensor, mask: Tensor) -> Tensor:
        number = mask.sum()
        check_rows(number, self.min_rows)
        student = unit_rows(*centred_rows(student_hidden, mask, number))
        teacher = unit_rows(*centred_rows(teacher_hidden, mask, number))
        return of_rows(2 - 2 * _nuclear_norm(student, teacher), number, self.min_rows)

    citation = GramLoss.citation


def _nuclear_norm(student: Tensor, teacher: Tensor) -> Tensor:
    """Return `||XᵀY||_*` for `(rows, width)` and `(rows, other width)`. Its gradient with respect to `XᵀY` is the
    polar factor `U Vᵀ`, so with this factor as a constant, the trace of `V Uᵀ XᵀY` has the same value and gradient."""
    with torch.no_grad():
        if student.shape[0] < min(student.shape[1], teacher.shape[1]):
            # With fewer rows than features, compute the product in the spaces spanned by the rows.
            student_basis, small_student = torch.linalg.qr(student.T)
            teacher_basis, small_teacher = torch.linalg.qr(teacher.T)
            u, values, v = torch.linalg.svd(small_student @ small_teacher.T, full_matrices=False)
            u = student_basis @ u
            v = teacher_basis @ v.T
        else:
            u, values, v = torch.linalg.svd(student.T @ teacher, full_matrices=False)
            v = v.T
        has_variance = values > values.max() * torch.finfo(values.dtype).eps * max(student.shape)
        v = v * has_variance
    return ((student @ u) * (teacher @ v)).sum()

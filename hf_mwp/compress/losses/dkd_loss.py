"""Loss on a classifier's logits, with separate weights for the correct class and the other classes."""

import torch
from torch import Tensor

from hf_mwp.utils.checked_types import checked

from .logit_distillation_loss import FLOOR, SoftenedLoss, kl
from .state_loss import citation_of


class DKDLoss(SoftenedLoss):
    r"""
    Decoupled divergence between the class probabilities of teacher and student,
    `T² · (alpha · KL(b_T || b_S) + beta · KL(q_T || q_S))`. Its two terms have separate weights: `b = (p_y, 1 - p_y)`
    is the probability of the correct class and of all others, and `q` the distribution over the other classes (the
    probabilities without `p_y`, renormalised). Computed in fp32.

    Args:
        temperature (`float`, *optional*, defaults to 4.0): Temperature `T` that softens all probabilities.
        alpha (`float`, *optional*, defaults to 1.0), beta (`float`, *optional*, defaults to 8.0):
            Weights of the two terms, as in the paper.
        scale_by_square (`bool`, *optional*, defaults to `True`), reduction (`str`, *optional*, defaults to `"mean"`):
            As in [`LogitDistillationLoss`].
        num_classes (`int`, *optional*): As in [`LogitDistillationLoss`].

    References: Decoupled Knowledge Distillation: https://huggingface.co/papers/2203.08679 (equation 7)

    Requirements: The same classes in the same order, as in [`LogitDistillationLoss`]. Forbidden classes are in neither
    term.

    Inputs:
        - student_logits, teacher_logits, mask, top_classes: As in [`LogitDistillationLoss`].
        - targets (`torch.Tensor`): the correct class `(...)`, or a boolean mask of the correct classes
          `(..., classes)`.

    Relations: [`LogitDistillationLoss`] is the case `alpha = 1`, `beta = 1 - p_y` of the teacher: the more confident
    the teacher, the lower the weight of the other classes.

    Example:
        >>> DKDLoss()(student(**batch).logits, teacher(**batch).logits, batch["labels"])
    """

    @checked
    def __init__(
        self,
        temperature: float = 4.0,
        alpha: float = 1.0,
        beta: float = 8.0,
        scale_by_square: bool = True,
        reduction: str = "mean",
        num_classes: int | None = None,
    ) -> None:
        super().__init__(temperature, scale_by_square, reduction, num_classes)
        if min(alpha, beta) < 0:
            raise ValueError(f"`alpha` and `beta` must not be negative, got {alpha} and {beta}.")
        self.alpha = alpha
        self.beta = beta

    def forward(
        self,
        student_logits: Tensor,
        teacher_logits: Tensor,
        targets: Tensor,
        mask: Tensor | None = None,
        top_classes: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if nothing is valid."""
        return self.compare(student_logits, teacher_logits, mask, top_classes, targets)

    def divergence(self, student: Tensor, teacher: Tensor, targets: Tensor | None = None) -> Tensor:
        student_correct, student_rest = _split(student.clamp(min=FLOOR), targets)
        teacher_correct, teacher_rest = _split(teacher.clamp(min=FLOOR), targets)
        return self.alpha * kl(teacher_correct, student_correct) + self.beta * kl(teacher_rest, student_rest)

    citation = citation_of("zhao2022decoupled")


def _split(log_probs: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithms of `b` and `q`. `targets` is true for the correct classes."""
    correct = log_probs.masked_fill(~targets, FLOOR).logsumexp(-1, keepdim=True)
    other_classes = (log_probs + torch.where(targets, FLOOR, 0.0)).clamp(min=FLOOR)
    incorrect = other_classes.logsumexp(-1, keepdim=True)
    return torch.cat([correct, incorrect], -1), other_classes - incorrect

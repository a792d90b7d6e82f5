"""Loss on a classifier's logits, with separate weights for the correct class and the other classes."""

import torch
from torch import Tensor, nn

from hf_mwp.utils.checked_types import checked

from .logit_distillation_loss import SoftenedLoss, kl
from .state_loss import citation_of


FLOOR = -1e30  # minimum log-probability, so that forbidden classes and their gradients are finite


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

    References: Decoupled Knowledge Distillation: https://huggingface.co/papers/2203.08679 (equation 7)

    Requirements: The same classes in the same order, as in [`LogitDistillationLoss`]. Forbidden classes are in neither
    term.

    Inputs:
        - student_logits, teacher_logits, mask: As in [`LogitDistillationLoss`].
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
    ) -> None:
        super().__init__(temperature, scale_by_square, reduction)
        if min(alpha, beta) < 0:
            raise ValueError(f"`alpha` and `beta` must not be negative, got {alpha} and {beta}.")
        self.alpha, self.beta = alpha, beta

    def forward(
        self, student_logits: Tensor, teacher_logits: Tensor, targets: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if nothing is valid."""
        student, teacher, rows = self.log_probabilities(student_logits, teacher_logits, mask)
        if targets.shape == student.shape[:-1]:
            targets = nn.functional.one_hot(targets.clamp(min=0), student.shape[-1])
        others = torch.where(targets.bool(), FLOOR, 0.0)
        splits = (_split(log_probs.clamp(min=FLOOR), others) for log_probs in (teacher, student))
        binary, spread = zip(*splits, strict=True)
        return self.reduce(self.alpha * kl(*binary) + self.beta * kl(*spread), rows)

    citation = citation_of("zhao2022decoupled")


def _split(log_probs: Tensor, others: Tensor) -> tuple[Tensor, Tensor]:
    """Return the logarithms of `b` and `q`. `others` is 0 for all classes but the correct ones."""
    right = log_probs.masked_fill(others == 0, FLOOR).logsumexp(-1, keepdim=True)
    left = (log_probs + others).clamp(min=FLOOR)
    rest = left.logsumexp(-1, keepdim=True)
    return torch.cat([right, rest], -1), left - rest

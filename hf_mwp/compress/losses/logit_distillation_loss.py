"""Losses between the class probabilities of student and teacher."""

import math

import torch
from torch import Tensor, nn

from hf_mwp.utils.checked_types import checked

from .state_loss import citation_of, masked, valid_tokens


def kl(first: Tensor, second: Tensor) -> Tensor:
    """Return the sum of `KL(first || second)` over log-probabilities `(..., classes)`."""
    probabilities = first.exp()
    # A forbidden class has probability 0, and 0 times its log-probability may be NaN. Any other NaN is kept.
    difference = torch.where(probabilities == 0, 0.0, first - second)
    return (probabilities * difference).sum()


def _mixture(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    """Return the log-probabilities of `alpha * teacher + (1 - alpha) * student`, finite for forbidden classes."""
    lowest = torch.finfo(student.dtype).min / 4
    student = student.clamp(min=lowest)
    teacher = teacher.clamp(min=lowest)
    return torch.logaddexp(teacher + math.log(alpha), student + math.log1p(-alpha))


def _jsd(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    mean = _mixture(student, teacher, 0.5)
    return (kl(teacher, mean) + kl(student, mean)) / 2


def _skew(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    if alpha:
        student = _mixture(student, teacher, alpha)
    return kl(teacher, student)


DIRECTIONS = {
    "forward": lambda student, teacher, alpha: kl(teacher, student),
    "reverse": lambda student, teacher, alpha: kl(student, teacher),
    "jsd": _jsd,
    "skew": _skew,
}


class SoftenedLoss(nn.Module):
    """Base class of losses between class probabilities that are softened by a temperature."""

    def __init__(self, temperature: float, scale_by_square: bool, reduction: str) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
        if reduction not in ("mean", "batchmean"):
            raise ValueError(f'`reduction` must be "mean" or "batchmean", got {reduction!r}.')
        self.temperature = temperature
        self.scale_by_square = scale_by_square
        self.reduction = reduction

    def log_probabilities(self, student: Tensor, teacher: Tensor, mask: Tensor | None) -> tuple[Tensor, ...]:
        """Return the softened log-probabilities of both models, equal at padding, and a mask of valid positions."""
        if student.shape != teacher.shape:
            raise ValueError(f"The logits have different shapes, {tuple(student.shape)} and {tuple(teacher.shape)}.")
        rows = valid_tokens(mask, student)
        student = masked(student, rows).float() / self.temperature
        teacher = masked(teacher.detach(), rows).float() / self.temperature
        return student.log_softmax(-1), teacher.log_softmax(-1), rows

    def reduce(self, total: Tensor, rows: Tensor) -> Tensor:
        """Return the loss from `total`, its sum over the valid positions."""
        if self.reduction == "batchmean":
            loss = total / max(len(rows), 1)
        else:
            loss = total / rows.sum().clamp(min=1)
        if self.scale_by_square:
            loss = loss * self.temperature**2
        return loss


class LogitDistillationLoss(SoftenedLoss):
    r"""
    Kullback-Leibler divergence between the class probabilities of teacher and student, both softened by a temperature
    `T`: `T² · KL(softmax(teacher / T) || softmax(student / T))`. Computed in fp32.

    The papers write a cross-entropy instead, which is larger by the teacher's entropy. This entropy does not depend on
    the student, so the gradients are the same. The divergence is zero for identical logits.

    Args:
        temperature (`float`, *optional*, defaults to 4.0):
            Larger values soften the probabilities. The default is the value of the compact model (AAAI 2025, below).
        scale_by_square (`bool`, *optional*, defaults to `True`): Multiply by `T²`, as in "Distilling the Knowledge in
            a Neural Network". The size of the gradients, and so the balance with a loss on labels, then stays the same
            when `T` changes. `False` is the formula of the compact model and of TextBrewer.
        reduction (`str`, *optional*, defaults to `"mean"`):
            `"mean"`: average over the valid positions. `"batchmean"`: sum over the valid positions, divided by the
            number of examples. [`MwpSolver`] reduces its cross-entropy in the same way.
        direction (`str`, *optional*, defaults to `"forward"`): `"forward"`: `KL(teacher || student)`, which makes the
            student cover all classes that the teacher considers possible. `"reverse"`: `KL(student || teacher)`, which
            concentrates the student on classes that the teacher considers likely. `"jsd"`: the Jensen-Shannon
            divergence. `"skew"`: `KL(teacher || skew_alpha * teacher + (1 - skew_alpha) * student)`.
        skew_alpha (`float`, *optional*, defaults to 0.1): Share of the teacher in `"skew"`, at least 0 and below 1.
            With 0, `"skew"` equals `"forward"`.

    References:
        - Distilling the Knowledge in a Neural Network: https://huggingface.co/papers/1503.02531 (section 2)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), the soft part of the
          prediction loss
        - DistiLLM: https://huggingface.co/papers/2402.03898 (section 3.1, skew divergence)

    Requirements:
        1. Student and teacher have the same classes in the same order.
        2. Forbidden classes (for example absent numbers) may have the logit `finfo.min` or `-inf`. Both models must
           forbid the same classes and allow at least one class at each valid position.

    Inputs:
        - student_logits (`torch.Tensor`): `(..., classes)`, for example `(B, C)` or `(B, T, V)`.
        - teacher_logits (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): the shape without the classes; true or non-zero for positions that count.

    Relations: [`HiddenMSELoss`] compares hidden states instead of predictions.

    Example:
        >>> LogitDistillationLoss()(student(**batch).logits, teacher(**batch).logits, batch["labels"] != -100)
    """

    @checked
    def __init__(
        self,
        temperature: float = 4.0,
        scale_by_square: bool = True,
        reduction: str = "mean",
        direction: str = "forward",
        skew_alpha: float = 0.1,
    ) -> None:
        super().__init__(temperature, scale_by_square, reduction)
        if direction not in DIRECTIONS:
            raise ValueError(f"`direction` must be one of {', '.join(DIRECTIONS)}, got {direction!r}.")
        if not 0 <= skew_alpha < 1:
            raise ValueError(f"`skew_alpha` must be at least 0 and below 1, got {skew_alpha}.")
        self.direction = direction
        self.skew_alpha = skew_alpha

    def forward(self, student_logits: Tensor, teacher_logits: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if nothing is valid."""
        student, teacher, rows = self.log_probabilities(student_logits, teacher_logits, mask)
        return self.reduce(DIRECTIONS[self.direction](student, teacher, self.skew_alpha), rows)

    citation = citation_of("hinton2015distilling")

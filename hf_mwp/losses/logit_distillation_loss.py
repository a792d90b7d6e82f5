"""Distillation of a classifier's logits."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from .state_loss import masked, valid_tokens


def _kl(first: Tensor, second: Tensor) -> Tensor:
    """Sum of `KL(first || second)` of log-probabilities `(..., classes)`."""
    probabilities = first.exp()
    # A forbidden class has probability 0, and 0 times its log-probability may be NaN. Any other NaN is kept.
    difference = torch.where(probabilities == 0, 0.0, first - second)
    return (probabilities * difference).sum()


def _mixture(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    """Log-probabilities of `alpha * teacher + (1 - alpha) * student`, finite for forbidden classes."""
    lowest = torch.finfo(student.dtype).min / 4
    student, teacher = student.clamp(min=lowest), teacher.clamp(min=lowest)
    return torch.logaddexp(teacher + math.log(alpha), student + math.log1p(-alpha))


def _skew(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    return _kl(teacher, _mixture(student, teacher, alpha) if alpha else student)


def _jsd(student: Tensor, teacher: Tensor, alpha: float) -> Tensor:
    mean = _mixture(student, teacher, 0.5)
    return (_kl(teacher, mean) + _kl(student, mean)) / 2


DIRECTIONS = {
    "forward": lambda student, teacher, alpha: _kl(teacher, student),
    "reverse": lambda student, teacher, alpha: _kl(student, teacher),
    "jsd": _jsd,
    "skew": _skew,
}


class SoftenedLoss(nn.Module):
    """Base class of losses between class probabilities that a temperature softens."""

    def __init__(self, temperature: float, scale_by_square: bool, reduction: str) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
        if reduction not in ("mean", "batchmean"):
            raise ValueError(f'`reduction` must be "mean" or "batchmean", got {reduction!r}.')
        self.temperature, self.scale_by_square, self.reduction = temperature, scale_by_square, reduction

    def log_probabilities(
        self, student: Tensor, teacher: Tensor, mask: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the softened log-probabilities of both, equal at padding, and which positions are valid."""
        if student.shape != teacher.shape:
            raise ValueError(
                f"The student's logits have the shape {tuple(student.shape)}, the teacher's {tuple(teacher.shape)}: "
                "they must classify the same positions into the same classes."
            )
        rows = valid_tokens(mask, student)
        logits = (masked(each, rows).float() / self.temperature for each in (student, teacher.detach()))
        return *(each.log_softmax(-1) for each in logits), rows

    def reduce(self, total: Tensor, rows: Tensor) -> Tensor:
        """Return the loss from its sum over the valid positions."""
        loss = total / (max(len(rows), 1) if self.reduction == "batchmean" else rows.sum().clamp(min=1))
        return loss * self.temperature**2 if self.scale_by_square else loss


class LogitDistillationLoss(SoftenedLoss):
    r"""
    Purpose: makes the student's class probabilities follow the teacher's, both softened by a temperature `T`:
    `T² · KL(softmax(teacher / T) || softmax(student / T))`, computed in fp32.

    The paper writes a cross-entropy; the Kullback-Leibler divergence differs from it by the teacher's entropy, which
    does not depend on the student: the gradients are the same, and identical logits give zero.

    Args:
        temperature (`float`, *optional*, defaults to 4.0):
            Larger values soften the probabilities. 4 is the value of Ming et al.
        scale_by_square (`bool`, *optional*, defaults to `True`):
            Multiply by `T²`, as Hinton et al. do, which keeps the size of the gradients when `T` changes and so the
            balance with a loss on labels. `False` gives the formula of Ming et al. and of TextBrewer.
        reduction (`str`, *optional*, defaults to `"mean"`):
            `"mean"`: average over the valid positions. `"batchmean"`: sum over the valid positions, divided by the
            number of examples; this is how [`MwpSolver`] reduces its cross-entropy, so the two can be weighted.
        direction (`str`, *optional*, defaults to `"forward"`):
            `"forward"`: `KL(teacher || student)`, which makes the student cover all that the teacher holds possible.
            `"reverse"`: `KL(student || teacher)`, which makes it keep to what the teacher holds likely. `"jsd"`: the
            Jensen-Shannon divergence. `"skew"`: `KL(teacher || skew_alpha * teacher + (1 - skew_alpha) * student)`.
        skew_alpha (`float`, *optional*, defaults to 0.1): Share of the teacher in `"skew"`, from 0 to below 1; 0 is
            `"forward"`.

    References:
        - Distilling the Knowledge in a Neural Network: https://huggingface.co/papers/1503.02531 (section 2)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), the soft part of its
          prediction loss
        - DistiLLM: https://huggingface.co/papers/2402.03898 (section 3.1, skew divergence)

    Requirements:
        1. Student and teacher have the same classes in the same order.
        2. Classes which a model forbids (for example absent numbers) may hold `finfo.min` or `-inf`; both models must
           forbid the same ones, and leave at least one class at each valid position.

    Inputs:
        - student_logits (`torch.Tensor`): `(..., classes)`, for example `(B, C)` or `(B, T, V)`.
        - teacher_logits (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): the shape without the classes; true or non-zero where a position counts.

    Relations: [`HiddenMSELoss`] compares what the encoder computes inside instead of what the model finally says.

    Example:
        >>> LogitDistillationLoss()(student(**batch).logits, teacher(**batch).logits, batch["labels"] != -100)
    """

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
            raise ValueError(f"`skew_alpha` must be from 0 to below 1, got {skew_alpha}.")
        self.direction, self.skew_alpha = direction, skew_alpha

    def forward(self, student_logits: Tensor, teacher_logits: Tensor, mask: Tensor | None = None) -> Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if nothing is valid."""
        student, teacher, rows = self.log_probabilities(student_logits, teacher_logits, mask)
        return self.reduce(DIRECTIONS[self.direction](student, teacher, self.skew_alpha), rows)

    citation = """
@misc{hinton2015distilling,
    title = {Distilling the Knowledge in a Neural Network},
    author = {Geoffrey Hinton and Oriol Vinyals and Jeff Dean},
    year = {2015},
    eprint = {1503.02531},
    archivePrefix = {arXiv}
}
""".strip()

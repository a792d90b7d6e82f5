"""Losses between the class probabilities of student and teacher."""

import math

import torch
from torch import Tensor, nn

from hf_mwp.utils.checked_types import checked

from .position_chunks import sum_over_positions
from .state_loss import citation_of, masked, valid_tokens


FLOOR = -1e30  # minimum log-probability, so that forbidden classes and their gradients are finite


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
    """Base class of losses between class probabilities that are softened by a temperature. A derived class implements
    `divergence`. Large logits are compared in chunks of positions ([`sum_over_positions`])."""

    def __init__(
        self, temperature: float, scale_by_square: bool, reduction: str, num_classes: int | None = None
    ) -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
        if reduction not in ("mean", "batchmean"):
            raise ValueError(f'`reduction` must be "mean" or "batchmean", got {reduction!r}.')
        self.temperature = temperature
        self.scale_by_square = scale_by_square
        self.reduction = reduction
        self.num_classes = num_classes

    def divergence(self, student: Tensor, teacher: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the sum of the divergences over softened log-probabilities `(..., classes)`. `targets` is a boolean
        mask of the correct classes."""
        raise NotImplementedError

    def compare(
        self,
        student_logits: Tensor,
        teacher_logits: Tensor,
        mask: Tensor | None,
        top_classes: Tensor | None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if nothing is valid."""
        if top_classes is None and self.num_classes is None and student_logits.shape != teacher_logits.shape:
            shapes = f"{tuple(student_logits.shape)} and {tuple(teacher_logits.shape)}"
            raise ValueError(f"The logits have different shapes, {shapes}.")
        valid = valid_tokens(mask, student_logits)
        others = {"teacher": teacher_logits.detach(), "valid": valid}
        if top_classes is not None:
            others["top_classes"] = top_classes
        if targets is not None:
            others["targets"] = targets
        total = sum_over_positions(self._sum, student_logits, others)
        return self.reduce(total, valid)

    def _sum(
        self,
        student: Tensor,
        teacher: Tensor,
        valid: Tensor,
        top_classes: Tensor | None = None,
        targets: Tensor | None = None,
    ) -> Tensor:
        """Return the sum of the divergences over all positions."""
        student = self._soften(student, valid)
        if top_classes is None:
            student_log_probs = student.log_softmax(-1)
            teacher_log_probs = self._soften(teacher, valid).log_softmax(-1)
        else:
            # Normalise after the merge, which leaves only a few classes.
            student_log_probs = merge_other_classes(student, top_classes).log_softmax(-1)
            teacher_log_probs = masked(teacher, valid).log_softmax(-1)
            # The divergence at padding must be zero.
            teacher_log_probs = torch.where(valid.unsqueeze(-1), teacher_log_probs, student_log_probs.detach())
        if targets is None:
            return self.divergence(student_log_probs, teacher_log_probs)
        return self.divergence(student_log_probs, teacher_log_probs, target_mask(targets, student, top_classes))

    def _soften(self, logits: Tensor, valid: Tensor) -> Tensor:
        """Return the logits of the compared classes divided by the temperature, zero where not `valid`."""
        logits = masked(logits[..., : self.num_classes], valid)
        if self.temperature == 1:
            return logits
        # In place, because `masked` has made a copy.
        return logits.div_(self.temperature)

    def reduce(self, total: Tensor, rows: Tensor) -> Tensor:
        """Return the loss from `total`, its sum over the valid positions."""
        if self.reduction == "batchmean":
            loss = total / max(len(rows), 1)
        else:
            loss = total / rows.sum().clamp(min=1)
        if self.scale_by_square:
            loss = loss * self.temperature**2
        return loss


def merge_other_classes(scores: Tensor, top_classes: Tensor) -> Tensor:
    """Return the scores `(..., k + 1)` of the classes in `top_classes` `(..., k)`, and of all other classes together,
    from log-probabilities or logits `(..., classes)`."""
    top = scores.gather(-1, top_classes)
    others = scores.scatter(-1, top_classes, FLOOR).logsumexp(-1, keepdim=True)
    return torch.cat([top, others], -1)


def target_mask(targets: Tensor, scores: Tensor, top_classes: Tensor | None = None) -> Tensor:
    """Return a boolean mask of the correct classes in the shape of scores `(..., classes)`, or in that of
    [`merge_other_classes`], from the correct class `(...)` of each position or from such a mask."""
    if targets.shape != scores.shape[:-1]:
        return targets.bool()
    targets = targets.clamp(min=0).unsqueeze(-1)
    if top_classes is None:
        return torch.zeros_like(scores, dtype=torch.bool).scatter(-1, targets, True)
    is_top = top_classes == targets
    return torch.cat([is_top, ~is_top.any(-1, keepdim=True)], -1)


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
        num_classes (`int`, *optional*): Number of first classes that are compared, for models with spare rows in their
            vocabulary. Defaults to all classes, which must be equally many.

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
        - top_classes (`torch.Tensor`, *optional*): classes `(..., k)`. If given, `teacher_logits` are the softened
          log-probabilities `(..., k + 1)` of these classes and of all others together, and the student's probabilities
          are merged in the same way.

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
        num_classes: int | None = None,
    ) -> None:
        super().__init__(temperature, scale_by_square, reduction, num_classes)
        if direction not in DIRECTIONS:
            raise ValueError(f"`direction` must be one of {', '.join(DIRECTIONS)}, got {direction!r}.")
        if not 0 <= skew_alpha < 1:
            raise ValueError(f"`skew_alpha` must be at least 0 and below 1, got {skew_alpha}.")
        self.direction = direction
        self.skew_alpha = skew_alpha

    def forward(
        self,
        student_logits: Tensor,
        teacher_logits: Tensor,
        mask: Tensor | None = None,
        top_classes: Tensor | None = None,
    ) -> Tensor:
        """Return the scalar fp32 loss. It is zero, with a zero gradient, if nothing is valid."""
        return self.compare(student_logits, teacher_logits, mask, top_classes)

    def divergence(self, student: Tensor, teacher: Tensor, targets: Tensor | None = None) -> Tensor:
        return DIRECTIONS[self.direction](student, teacher, self.skew_alpha)

    citation = citation_of("hinton2015distilling")

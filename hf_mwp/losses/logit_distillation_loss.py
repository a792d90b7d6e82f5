"""Distillation of a classifier's logits."""

from __future__ import annotations

import torch
from torch import nn


class LogitDistillationLoss(nn.Module):
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

    References:
        - Distilling the Knowledge in a Neural Network: https://huggingface.co/papers/1503.02531 (section 2)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), the soft part of its
          prediction loss

    Requirements:
        1. Student and teacher have the same classes in the same order.
        2. Classes which a model forbids (for example absent numbers) may hold `finfo.min` or `-inf`; both models must
           forbid the same ones, and leave at least one class at each valid position.

    Inputs:
        - student_logits (`torch.Tensor`): `(..., classes)`, for example `(B, C)` or `(B, T, V)`.
        - teacher_logits (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): the shape without the classes; true or non-zero where a position counts.

    Relations:
        - [`HiddenMSELoss`] compares what the encoder computes inside instead of what the model finally says.

    Example:

    ```python
    >>> loss = LogitDistillationLoss(temperature=4.0)
    >>> loss(student(**batch).logits, teacher(**batch).logits, mask=batch["labels"] != -100)
    ```
    """

    def __init__(self, temperature: float = 4.0, scale_by_square: bool = True, reduction: str = "mean") -> None:
        super().__init__()
        if not temperature > 0:
            raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
        if reduction not in ("mean", "batchmean"):
            raise ValueError(f'`reduction` must be "mean" or "batchmean", got {reduction!r}.')
        self.temperature = temperature
        self.scale_by_square = scale_by_square
        self.reduction = reduction

    def forward(
        self, student_logits: torch.Tensor, teacher_logits: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if nothing is valid."""
        if student_logits.shape != teacher_logits.shape:
            raise ValueError(
                f"The student's logits have the shape {tuple(student_logits.shape)}, the teacher's "
                f"{tuple(teacher_logits.shape)}: they must classify the same positions into the same classes."
            )
        if mask is not None and mask.shape != student_logits.shape[:-1]:
            raise ValueError(
                f"The mask has the shape {tuple(mask.shape)}, but the logits have positions of the shape "
                f"{tuple(student_logits.shape[:-1])}."
            )
        teacher_logits = teacher_logits.detach()
        if mask is not None:
            # Both are set to the same before the softmax, so that padding adds nothing, whatever it holds (NaN
            # included).
            valid = mask.bool().unsqueeze(-1)
            student_logits = torch.where(valid, student_logits, 0.0)
            teacher_logits = torch.where(valid, teacher_logits, 0.0)
        student = torch.log_softmax(student_logits.float() / self.temperature, dim=-1)
        teacher = torch.log_softmax(teacher_logits.float() / self.temperature, dim=-1)
        probabilities = teacher.exp()
        # `where` and not a product: a forbidden class has probability 0, and 0 times its log-probability may be NaN.
        total = torch.where(probabilities > 0, probabilities * (teacher - student), 0.0).sum()
        if self.reduction == "batchmean":
            loss = total / max(student_logits.shape[0], 1)
        elif mask is not None:
            loss = total / mask.bool().sum().clamp(min=1)
        else:
            loss = total / max(student_logits.shape[:-1].numel(), 1)
        return loss * self.temperature**2 if self.scale_by_square else loss

    def extra_repr(self) -> str:
        return f"temperature={self.temperature}, scale_by_square={self.scale_by_square}, reduction={self.reduction!r}"

    @property
    def citation(self) -> str:
        """BibTeX entry for model cards."""
        return """
@misc{hinton2015distilling,
    title = {Distilling the Knowledge in a Neural Network},
    author = {Geoffrey Hinton and Oriol Vinyals and Jeff Dean},
    year = {2015},
    eprint = {1503.02531},
    archivePrefix = {arXiv}
}
""".strip()

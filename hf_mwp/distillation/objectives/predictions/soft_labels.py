"""Knowledge distillation: objective on the teacher's probabilities."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ....losses import LogitDistillationLoss
from ...features import Features
from .prediction_objective import PredictionObjective


class SoftLabels(PredictionObjective):
    """
    The student's probabilities follow the teacher's, knowledge distillation (KD) as Hinton et al. have it.

    Args:
        temperature (`float`, *optional*, defaults to 4.0), scale_by_square (`bool`, *optional*, defaults to `True`):
            See [`LogitDistillationLoss`].
        weight (`float`, *optional*, defaults to 1.0), name (`str`, *optional*, defaults to `"soft"`):
            See [`Objective`].
        direction (`str`, *optional*, defaults to `"forward"`), skew_alpha (`float`, *optional*, defaults to 0.1):
            See [`LogitDistillationLoss`].
        loss (`nn.Module`, *optional*):
            In place of [`LogitDistillationLoss`]: called with student logits, teacher logits and, where there are
            logits for each position, a mask of those that count; it returns their mean.
    """

    def __init__(
        self,
        temperature: float = 4.0,
        scale_by_square: bool = True,
        weight: float = 1.0,
        name: str = "soft",
        loss: nn.Module | None = None,
        direction: str = "forward",
        skew_alpha: float = 0.1,
    ) -> None:
        super().__init__(name, weight)
        self.scale_by_square, self.loss, self.direction, self.skew_alpha = scale_by_square, loss, direction, skew_alpha
        self.uses_probabilities = loss is None
        self.temperature = temperature if loss is None else float(getattr(loss, "temperature", 1.0))
        self.teacher_reads = ("logits",)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        for who, features in (("student", student), ("teacher", teacher)):
            if features.get("logits") is None:
                raise ValueError(f"The {who} returns no logits: set `soft_label_weight=0`.")
        ours, theirs = student["logits"].shape, teacher["logits"].shape
        if ours != theirs:
            raise ValueError(
                f"For the same batch the student's logits have the shape {tuple(ours)}, the teacher's "
                f"{tuple(theirs)}: they must have the same classes (`num_labels`) or vocabulary, or set "
                "`soft_label_weight=0`."
            )
        if self.uses_probabilities and ours[-1] < 2:
            raise ValueError(
                "With a single class there are no probabilities to follow: for regression take `TeacherValues` "
                '(`prediction_loss="mse"`), give `SoftLabels(loss=...)` among the `objectives`, or set '
                "`soft_label_weight=0`."
            )
        super().setup(student, teacher, inputs)
        labels, config = inputs.get("labels"), getattr(student.model, "config", None)
        many = labels is not None and labels.is_floating_point() and labels.shape == ours
        if self.uses_probabilities and (many or getattr(config, "problem_type", None) == "multi_label_classification"):
            raise ValueError(
                "Where several classes can be right at once, probabilities that add up to 1 say nothing: take "
                '`TeacherValues` (`prediction_loss="mse"`), give `SoftLabels(loss=...)` among the `objectives`, or '
                "set `soft_label_weight=0`."
            )
        if self.uses_probabilities:
            self.loss = self._make_loss(self.kind.reduction)

    def _make_loss(self, reduction: str) -> nn.Module:
        return LogitDistillationLoss(
            self.temperature, self.scale_by_square, reduction, self.direction, self.skew_alpha
        )

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        return {self.name: self.loss(student["logits"], teacher["logits"], self.positions(inputs))}

"""Predictions: labels, and the teacher's probabilities or values."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from ...losses import DKDLoss, HiddenMSELoss, LogitDistillationLoss
from ...models.model_kind import CLASSIFIER, kind_of
from ..features import Features
from ..label_positions import label_mask, label_offset
from .objective import Objective


class PredictionObjective(Objective):
    """
    An objective on what a model finally says: of solvers of math word problems a mean over problems, of models with
    logits for each position one over the positions with labels (over the tokens where there are no labels), of others
    one over rows.
    """

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        logits = student.get("logits")
        self.parts = {self.name: self.weight}
        self.kind = kind_of(student.model, logits)
        self.offset = self._find_offset(student, inputs) if self.kind.per_position else 0

    def _find_offset(self, student: Features, inputs: Mapping[str, Any]) -> int:
        return label_offset(student.model, inputs)

    def positions(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """The positions `(batch, length)` that count where each has a prediction; `None` for all."""
        if self.kind is CLASSIFIER:
            return None
        if inputs.get("labels") is None:
            return inputs.get("attention_mask")
        return label_mask(inputs, (), None, self.offset)

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        if not self.kind.per_position:
            return {self.name: next(len(each) for each in inputs.values() if isinstance(each, Tensor))}
        positions = self.positions(inputs)
        return {self.name: None if positions is None else positions.sum()}


class HardLabels(PredictionObjective):
    """
    The student's own loss on the labels of its batch.

    Args:
        weight (`float`, *optional*, defaults to 1.0), name (`str`, *optional*, defaults to `"hard"`):
            See [`Objective`].
    """

    def __init__(self, weight: float = 1.0, name: str = "hard") -> None:
        super().__init__(name, weight)

    def _find_offset(self, student: Features, inputs: Mapping[str, Any]) -> int:
        try:
            return super()._find_offset(student, inputs)
        except ValueError:
            return 0  # the offset is only for weighing batches here

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        loss, positions = student.get("loss"), self.positions(inputs)
        if loss is None:
            raise ValueError(
                "The student computed no loss, so the batch has no labels: give labels, or set `soft_label_weight=1`."
            )
        loss = loss.mean()
        # Without any label a mean is NaN.
        return {self.name: loss if positions is None else loss.where(positions.any(), 0.0)}


class SoftLabels(PredictionObjective):
    """
    The student's probabilities follow the teacher's, knowledge distillation (KD) as Hinton et al. have it.

    Args:
        temperature (`float`, *optional*, defaults to 4.0), scale_by_square (`bool`, *optional*, defaults to `True`):
            See [`LogitDistillationLoss`].
        weight (`float`, *optional*, defaults to 1.0), name (`str`, *optional*, defaults to `"soft"`):
            See [`Objective`].
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
    ) -> None:
        super().__init__(name, weight)
        self.scale_by_square, self.loss = scale_by_square, loss
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
        return LogitDistillationLoss(self.temperature, self.scale_by_square, reduction)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        return {self.name: self.loss(student["logits"], teacher["logits"], self.positions(inputs))}


class DKD(SoftLabels):
    """
    The student's probabilities follow the teacher's, decoupled knowledge distillation (DKD): how much goes to the
    right class and how the rest is spread have weights of their own. Needs labels. Of a solver's symbols equal numbers
    are one class, as in its own loss.

    Args:
        temperature (`float`, *optional*, defaults to 4.0), scale_by_square (`bool`, *optional*, defaults to `True`),
        alpha (`float`, *optional*, defaults to 1.0), beta (`float`, *optional*, defaults to 8.0): See [`DKDLoss`].
        weight (`float`, *optional*, defaults to 1.0), name (`str`, *optional*, defaults to `"soft"`):
            See [`Objective`].
    """

    def __init__(
        self,
        temperature: float = 4.0,
        scale_by_square: bool = True,
        weight: float = 1.0,
        name: str = "soft",
        alpha: float = 1.0,
        beta: float = 8.0,
    ) -> None:
        super().__init__(temperature, scale_by_square, weight, name)
        self.alpha, self.beta = alpha, beta

    def _make_loss(self, reduction: str) -> nn.Module:
        return DKDLoss(self.temperature, self.alpha, self.beta, self.scale_by_square, reduction)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        logits, targets = student["logits"], self._targets(student["logits"], inputs)
        return {self.name: self.loss(logits, teacher["logits"], targets, self.positions(inputs))}

    def _targets(self, logits: Tensor, inputs: Mapping[str, Any]) -> Tensor:
        """The right class of each prediction, or which classes are right."""
        labels = inputs.get("labels")
        if labels is None or labels.is_floating_point() or labels.dim() != logits.dim() - 1:
            raise ValueError(
                "Decoupled distillation needs one right class for each prediction: give labels, or take the teacher's "
                'probabilities as they are (`SoftLabels`, `prediction_loss="kd"`).'
            )
        if self.kind.per_position:
            return nn.functional.pad(labels[:, self.offset :], (0, self.offset), value=-100)
        groups = inputs.get("number_groups")
        if not self.kind.is_solver or groups is None:
            return labels
        symbols = logits.shape[-1] - groups.shape[1]
        own = torch.arange(symbols, device=logits.device).expand(len(labels), -1)
        # Each class and the first one of its group; an absent number is in no other's.
        groups = torch.cat([own, groups.where(groups < 0, groups + symbols)], 1)
        return groups.unsqueeze(1) == groups.gather(1, labels.clamp(min=0)).unsqueeze(-1)


class TeacherValues(SoftLabels):
    """
    The student's outputs follow the teacher's themselves, by their squared distance ([`HiddenMSELoss`]): what is left
    of knowledge distillation in a regression, whose models have one output; also for the logits of a classifier.

    Args:
        weight (`float`, *optional*, defaults to 1.0), name (`str`, *optional*, defaults to `"soft"`):
            See [`Objective`].

    References:
        Sparse Teachers Can Be Dense with Knowledge (EMNLP 2022), for STS-B; Ba and Caruana, Do Deep Nets Really Need
        to be Deep? (2014), for logits
    """

    def __init__(self, weight: float = 1.0, name: str = "soft") -> None:
        super().__init__(weight=weight, name=name, loss=HiddenMSELoss())

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        if self.kind.is_solver:
            raise ValueError(
                "The logits of a solver's forbidden symbols have no values to follow: take its probabilities "
                '(`SoftLabels`, `prediction_loss="kd"`).'
            )

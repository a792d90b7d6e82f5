"""Objective on the teacher's probabilities: decoupled knowledge distillation."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.losses import DKDLoss
from hf_mwp.compress.models.prediction_kind import symbol_groups
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .soft_labels import SoftLabels, cached_classes


class DKD(SoftLabels):
    """
    Decoupled knowledge distillation (DKD): trains the student's probabilities to match the teacher's, with separate
    weights for the probability of the correct class and the distribution over the other classes. Needs labels. A
    solver's symbols for equal numbers are one class, as in its own loss.

    Args:
        temperature (`float`), scale_by_square (`bool`), alpha (`float`), beta (`float`): See [`DKDLoss`].
        weight (`float`), name (`str`): See [`Objective`].
        top_k (`int`): See [`SoftLabels`].
    """

    needs_labels = True

    @checked
    def __init__(
        self,
        temperature: float = 4.0,
        scale_by_square: bool = True,
        weight: float = 1.0,
        name: str = "soft",
        alpha: float = 1.0,
        beta: float = 8.0,
        top_k: int = 64,
    ) -> None:
        super().__init__(temperature, scale_by_square, weight, name, top_k=top_k)
        self.alpha = alpha
        self.beta = beta

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        if not self.kind.prediction.has_targets:
            raise self._no_target()

    def _make_loss(self, reduction: str) -> nn.Module:
        return DKDLoss(self.temperature, self.alpha, self.beta, self.scale_by_square, reduction, self.num_classes)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        targets = self._targets(student["logits"], inputs)
        positions = self.positions(inputs)
        if self.num_classes is not None:
            # The teacher does not know all tokens of the student.
            positions = positions & (targets < self.num_classes)
            targets = targets.clamp(max=self.num_classes - 1)
        arguments = (student["logits"], teacher["logits"], targets, positions)
        return {self.name: self.loss(*arguments, **cached_classes(teacher))}

    def _targets(self, logits: Tensor, inputs: Mapping[str, Any]) -> Tensor:
        """Return the correct class of each prediction, or a mask of the correct classes."""
        labels = self.kind.targets(inputs)
        prediction = self.kind.prediction
        if labels is None or labels.dim() != logits.dim() - 1:
            raise self._no_target()
        groups = inputs.get("number_groups")
        if groups is None or not prediction.has_numbers:
            return labels
        groups = symbol_groups(groups, logits.shape[-1] - groups.shape[1])
        return groups.unsqueeze(1) == groups.gather(1, labels.clamp(min=0)).unsqueeze(-1)

    def _no_target(self) -> ValueError:
        return ValueError(
            f"Decoupled distillation needs one correct class for each prediction ({self.kind.prediction.name}). Pass "
            'labels, or use `SoftLabels` (`prediction_loss="kd"`).'
        )

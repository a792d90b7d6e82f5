"""Objective on hidden states."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp.compress.losses import HiddenMSELoss
from hf_mwp.compress.models.model_kind import unwrapped
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .layer_objective import LayerObjective


class HiddenStates(LayerObjective):
    """
    Objective that trains the student's hidden states to match the teacher's. With [`HiddenMSELoss`] and three
    uniformly mapped layers, `layer_weights` default to 1.0, 0.9 and 1.0, as in A Compact Model for Mathematics Problem
    Representations Distilled from BERT (AAAI 2025).

    Args:
        loss (`nn.Module`, *optional*): Defaults to [`HiddenMSELoss`]; [`NSTLoss`] compares similarities of tokens. A
            loss with `needs_equal_width = False` receives states of different widths as they are. For other losses a
            linear map is trained with the student.
        use_bottlenecks (`bool`, *optional*, defaults to `True`):
            Use the narrow states of the teacher's bottleneck networks for layers that have a bottleneck.
        pool_statistics (`bool`, *optional*, defaults to `False`): Compute the loss over all batches and processes of a
            step at once, so that accumulated batches have the same loss as one large batch. The loss needs
            `statistics` and `from_statistics`, as [`CKALoss`] has. Costs another pass of the models without gradients.
        name (`str`, *optional*, defaults to `"hidden"`), kwargs: See [`LayerObjective`].
    """

    @checked
    def __init__(
        self,
        loss: nn.Module | None = None,
        use_bottlenecks: bool = True,
        name: str = "hidden",
        pool_statistics: bool = False,
        **kwargs,
    ) -> None:
        super().__init__(HiddenMSELoss() if loss is None else loss, name=name, **kwargs)
        self.use_bottlenecks, self.pool_statistics = use_bottlenecks, pool_statistics
        # Loss and gradients of each part, and the number of batches that they were computed from.
        self._pooled: dict[str, tuple[Tensor, Sequence[Tensor | None]]] = {}
        self._num_batches = 1
        self.narrow: list[int] = []

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        narrow = getattr(getattr(unwrapped(teacher.model), "config", None), "bottleneck_layers", None) or ()
        self.narrow = list(narrow) if self.use_bottlenecks and self.stack == "encoder" else []
        super().setup(student, teacher, inputs)
        self.projections = {}
        if getattr(self.loss, "needs_equal_width", True):
            for pair in (pair for group in self.groups.values() for pair in group):
                (ours,), (theirs,) = self._names(pair)
                self.projections[self._projection(ours)] = ours, student[ours].shape[-1], teacher[theirs].shape[-1]

    def _default_weights(self, count: int) -> list[float]:
        # The paper has higher weights for the first and the last of its three layers.
        is_paper = count == 3 and self.layer_mapping == "uniform" and isinstance(self.loss, HiddenMSELoss)
        return [1.0, 0.9, 1.0] if is_paper else super()._default_weights(count)

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        s, t = pair
        narrow = f"bottleneck_{self.narrow.index(t)}" if t in self.narrow else f"{self.prefix}hidden_{t}"
        return [f"{self.prefix}hidden_{s}"], [narrow]

    def _projection(self, name: str) -> str:
        """Return a name for the projection of a state that no other objective uses."""
        return f"{self.name}_{name.rpartition('_')[2]}"

    def _of_student(self, student: Features, name: str) -> Tensor:
        return student.projected.get(self._projection(name), student[name])

    def statistics(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, list[Tensor]]:
        """Return sums over the tokens of a batch for each part. Sums of several batches and processes can be added."""
        mask = self.mask(inputs)
        return {
            part: list(self.loss.statistics(*ours, *theirs, mask))
            for part, (ours, theirs) in self._states(student, teacher).items()
        }

    def pool(self, totals: Mapping[str, Sequence[Tensor]], num_batches: int = 1) -> None:
        """Compute the losses of a step from the added statistics of its batches. `num_batches` is the number of
        batches that the trainer averages over. After a call with empty `totals`, each batch has its own loss again."""
        self._pooled, self._num_batches = {}, num_batches
        for part, sums in totals.items():
            with torch.enable_grad():
                leaves = [each.detach().requires_grad_() for each in sums]
                value = self.loss.from_statistics(self.loss.statistics_class(*leaves))
                self._pooled[part] = value.detach(), torch.autograd.grad(value, leaves, allow_unused=True)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        # Evaluations, which have no gradient, compute the loss of each batch.
        if not self._pooled or not torch.is_grad_enabled():
            return super().losses(student, teacher, inputs)
        parts = {}
        for part, sums in self.statistics(student, teacher, inputs).items():
            value, gradients = self._pooled[part]
            # The gradient is the share of this batch, by the chain rule. The value is the loss of the whole step.
            share = sum((g * each).sum() for g, each in zip(gradients, sums, strict=True) if g is not None)
            parts[part] = (value + self._num_batches * (share - share.detach())).float()
        return parts

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        return dict.fromkeys(self.parts) if self.pool_statistics else super().num_items(inputs)

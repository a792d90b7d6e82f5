"""Objective on hidden states."""

from collections.abc import Mapping, Sequence
from itertools import chain
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
        self.use_bottlenecks = use_bottlenecks
        self.pool_statistics = pool_statistics
        # Loss and gradients of each part, and the number of batches that they were computed from.
        self._pooled: dict[str, tuple[Tensor, Sequence[Tensor | None]]] = {}
        self._num_batches = 1
        self.narrow: list[int] = []

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        self.narrow = []
        if self.use_bottlenecks and self.stack == "encoder":
            teacher_config = getattr(unwrapped(teacher.model), "config", None)
            self.narrow = list(getattr(teacher_config, "bottleneck_layers", None) or ())
        super().setup(student, teacher, inputs)
        self.projections = {}
        if getattr(self.loss, "needs_equal_width", True):
            for pair in chain(*self.groups.values()):
                [student_name], [teacher_name] = self._names(pair)
                student_width = student[student_name].shape[-1]
                teacher_width = teacher[teacher_name].shape[-1]
                self.projections[self._projection(student_name)] = student_name, student_width, teacher_width

    def _default_weights(self, count: int) -> list[float]:
        # The paper has higher weights for the first and the last of its three layers.
        is_paper = count == 3 and self.layer_mapping == "uniform" and isinstance(self.loss, HiddenMSELoss)
        if is_paper:
            return [1.0, 0.9, 1.0]
        return super()._default_weights(count)

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        student_layer, teacher_layer = pair
        teacher_name = f"{self.prefix}hidden_{teacher_layer}"
        if teacher_layer in self.narrow:
            teacher_name = f"bottleneck_{self.narrow.index(teacher_layer)}"
        return [f"{self.prefix}hidden_{student_layer}"], [teacher_name]

    def _projection(self, name: str) -> str:
        """Return a name for the projection of a state that no other objective uses."""
        return f"{self.name}_{name.rpartition('_')[2]}"

    def _of_student(self, student: Features, name: str) -> Tensor:
        return student.projected.get(self._projection(name), student[name])

    def statistics(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, list[Tensor]]:
        """Return sums over the tokens of a batch for each part. Sums of several batches and processes can be added."""
        mask = self.mask(inputs)
        statistics = {}
        for name, (student_states, teacher_states) in self._states(student, teacher).items():
            statistics[name] = list(self.loss.statistics(*student_states, *teacher_states, mask))
        return statistics

    def pool(self, totals: Mapping[str, Sequence[Tensor]], num_batches: int = 1) -> None:
        """Compute the losses of a step from the added statistics of its batches. `num_batches` is the number of
        batches that the trainer averages over. After a call with empty `totals`, each batch has its own loss again."""
        self._pooled = {}
        self._num_batches = num_batches
        for name, sums in totals.items():
            with torch.enable_grad():
                leaves = [total.detach().requires_grad_() for total in sums]
                loss = self.loss.from_statistics(self.loss.statistics_class(*leaves))
                self._pooled[name] = loss.detach(), torch.autograd.grad(loss, leaves, allow_unused=True)

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        # Evaluations, which have no gradient, compute the loss of each batch.
        if not self._pooled or not torch.is_grad_enabled():
            return super().losses(student, teacher, inputs)
        losses = {}
        for name, sums in self.statistics(student, teacher, inputs).items():
            loss, gradients = self._pooled[name]
            # The gradient is the share of this batch, by the chain rule. The value is the loss of the whole step.
            share = 0
            for gradient, batch_sum in zip(gradients, sums, strict=True):
                if gradient is not None:
                    share = share + (gradient * batch_sum).sum()
            losses[name] = (loss + self._num_batches * (share - share.detach())).float()
        return losses

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        if self.pool_statistics:
            return dict.fromkeys(self.parts)
        return super().num_items(inputs)

"""Objective on hidden states."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ....losses import HiddenMSELoss
from ...features import Features
from .layer_objective import LayerObjective


class HiddenStates(LayerObjective):
    """
    Hidden states of the student follow those of the teacher. By [`HiddenMSELoss`] three uniformly mapped layers have
    the weights of Ming et al., 1.0, 0.9 and 1.0, unless `layer_weights` are given.

    Args:
        loss (`nn.Module`, *optional*):
            [`HiddenMSELoss`] if not given; [`NSTLoss`] compares similarities of tokens. If it has
            `needs_equal_width = False`, it gets states of different width as they are, otherwise through a linear map
            that is trained with the student.
        use_bottlenecks (`bool`, *optional*, defaults to `True`):
            Whether the narrow states of the teacher's bottleneck networks stand for the layers that have one.
        name (`str`, *optional*, defaults to `"hidden"`), kwargs: See [`LayerObjective`].
    """

    def __init__(
        self, loss: nn.Module | None = None, use_bottlenecks: bool = True, name: str = "hidden", **kwargs
    ) -> None:
        super().__init__(HiddenMSELoss() if loss is None else loss, name=name, **kwargs)
        self.use_bottlenecks = use_bottlenecks
        self.narrow: list[int] = []

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        config = getattr(teacher.model, "config", None)
        self.narrow = list(getattr(config, "bottleneck_layers", None) or ()) if self.use_bottlenecks else []
        super().setup(student, teacher, inputs)
        self.projections = {}
        if getattr(self.loss, "needs_equal_width", True):
            for pair in (pair for group in self.groups.values() for pair in group):
                (ours,), (theirs,) = self._names(pair)
                self.projections[self._projection(ours)] = (
                    pair[0],
                    student[ours].shape[-1],
                    teacher[theirs].shape[-1],
                )

    def _default_weights(self, count: int) -> list[float]:
        # The paper pays more attention to the first and the last of its three layers.
        is_paper = count == 3 and self.layer_mapping == "uniform" and isinstance(self.loss, HiddenMSELoss)
        return [1.0, 0.9, 1.0] if is_paper else super()._default_weights(count)

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        s, t = pair
        return [f"hidden_{s}"], [f"bottleneck_{self.narrow.index(t)}" if t in self.narrow else f"hidden_{t}"]

    def _projection(self, name: str) -> str:
        """Under which name a state is projected: not its own, since other objectives may project it otherwise."""
        return f"{self.name}_{name.rpartition('_')[2]}"

    def _of_student(self, student: Features, name: str) -> Tensor:
        projected = self._projection(name)
        return student.projected[projected] if projected in student.projected else student[name]

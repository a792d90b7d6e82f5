"""Hidden states and embedding outputs."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from ...losses import FSPLoss, HiddenMSELoss, PKDLoss
from ..features import Features
from .layer_objective import LayerObjective


class HiddenStates(LayerObjective):
    """
    Hidden states of the student follow those of the teacher.

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

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        s, t = pair
        return [f"hidden_{s}"], [f"bottleneck_{self.narrow.index(t)}" if t in self.narrow else f"hidden_{t}"]

    def _projection(self, name: str) -> str:
        """Under which name a state is projected: not its own, since other objectives may project it otherwise."""
        return f"{self.name}_{name.rpartition('_')[2]}"

    def _of_student(self, student: Features, name: str) -> Tensor:
        projected = self._projection(name)
        return student.projected[projected] if projected in student.projected else student[name]


class EmbeddingOutputs(HiddenStates):
    """
    The embedding output of the student follows that of the teacher, through a linear map where widths differ.

    Args:
        name (`str`, *optional*, defaults to `"embedding"`), kwargs: See [`HiddenStates`].
    """

    def __init__(self, name: str = "embedding", **kwargs) -> None:
        super().__init__(name=name, layer_mapping=[(0, 0)], **kwargs)

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        super().setup(student, teacher, inputs)
        self.layers = []  # it is none

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        return {self.name: layers}

    def _projection(self, name: str) -> str:
        return self.name


class FSP(HiddenStates):
    """
    The flow between two mapped layers of the student follows that between the teacher's: each pair
    is read with the one before it, the embedding outputs being the first.

    Args:
        loss (`nn.Module`, *optional*): [`FSPLoss`] if not given; called with the states of two layers each.
        name (`str`, *optional*, defaults to `"flow"`), kwargs: See [`HiddenStates`].
    """

    def __init__(self, loss: nn.Module | None = None, name: str = "flow", **kwargs) -> None:
        super().__init__(FSPLoss() if loss is None else loss, name=name, **kwargs)

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        before, flows = (0, 0), {}
        for pair in sorted(layers):
            # A mapping may name the embedding outputs itself.
            before = pair if pair[0] == 0 else before
            flows[pair] = [before, pair]
            before = pair
        return {f"{self.name}_{pair[0]}": flows[pair] for pair in layers}


class PKD(HiddenStates):
    """
    The `[CLS]` states of all mapped layers of the student together follow those of the teacher, patient knowledge
    distillation (PKD).

    Args:
        loss (`nn.Module`, *optional*): [`PKDLoss`] if not given; called with lists of states.
        name (`str`, *optional*, defaults to `"patient"`), kwargs: See [`HiddenStates`].
    """

    def __init__(self, loss: nn.Module | None = None, name: str = "patient", **kwargs) -> None:
        super().__init__(PKDLoss() if loss is None else loss, name=name, **kwargs)

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        return {self.name: layers}

    def _compare(self, ours: list[Tensor], theirs: list[Tensor], mask: Tensor | None) -> Tensor:
        return self.loss(ours, theirs, mask)

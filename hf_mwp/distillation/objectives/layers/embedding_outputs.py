"""Objective on embedding outputs."""

from collections.abc import Mapping
from typing import Any

from ...features import Features
from .hidden_states import HiddenStates


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

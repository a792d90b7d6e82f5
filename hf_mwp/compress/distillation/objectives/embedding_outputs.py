"""Objective on embedding outputs."""

from hf_mwp.utils.checked_types import checked

from .hidden_states import HiddenStates


class EmbeddingOutputs(HiddenStates):
    """
    Objective that trains the student's embedding output to match the teacher's, through a linear map if the widths
    differ.

    Args:
        name (`str`, *optional*, defaults to `"embedding"`), kwargs: See [`HiddenStates`].
    """

    @checked
    def __init__(self, name: str = "embedding", **kwargs) -> None:
        super().__init__(name=name, layer_mapping=[(0, 0)], **kwargs)

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        return {self.name: layers}

    def _projection(self, name: str) -> str:
        return self.name

"""Objective on the flow between layers."""

from torch import nn

from hf_mwp.compress.losses import FSPLoss
from hf_mwp.utils.checked_types import checked

from .hidden_states import HiddenStates


class FSP(HiddenStates):
    """
    Objective that trains the flow between two mapped layers of the student to match the flow between the teacher's
    layers. Each pair of layers is combined with the pair before it, and the first pair with the embedding outputs.

    Args:
        loss (`nn.Module`, *optional*): Defaults to [`FSPLoss`]. Called with the states of two layers of each model.
        name (`str`, *optional*, defaults to `"flow"`), kwargs: See [`HiddenStates`].
    """

    @checked
    def __init__(self, loss: nn.Module | None = None, name: str = "flow", **kwargs) -> None:
        super().__init__(FSPLoss() if loss is None else loss, name=name, **kwargs)

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        previous = (0, 0)
        flows = {}
        for pair in sorted(layers):
            if pair[0] == 0:
                # A mapping may contain the embedding outputs itself.
                previous = pair
            flows[pair] = [previous, pair]
            previous = pair
        return {f"{self.name}_{pair[0]}": flows[pair] for pair in layers}

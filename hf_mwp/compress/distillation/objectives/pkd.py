"""Objective on `[CLS]` states: patient knowledge distillation."""

from torch import nn

from hf_mwp.compress.losses import PKDLoss
from hf_mwp.utils.checked_types import checked

from .hidden_states import HiddenStates


class PKD(HiddenStates):
    """
    Objective that trains the `[CLS]` states of all mapped layers of the student together to match the teacher's. This
    is patient knowledge distillation (PKD). Decoders have no such state and are not supported.

    Args:
        loss (`nn.Module`, *optional*): Defaults to [`PKDLoss`]. Called with the states of each layer.
        name (`str`, *optional*, defaults to `"patient"`), kwargs: See [`HiddenStates`].
    """

    stacks = ("encoder",)

    @checked
    def __init__(self, loss: nn.Module | None = None, name: str = "patient", **kwargs) -> None:
        super().__init__(PKDLoss() if loss is None else loss, name=name, **kwargs)

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        return {self.name: layers}

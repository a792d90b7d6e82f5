"""Objective on relations between tokens and between layers."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from hf_mwp.compress.losses import CKDPairLoss, CKDTripleLoss
from hf_mwp.utils.checked_types import checked

from ..features import Features
from .hidden_states import HiddenStates


class ContextRelations(HiddenStates):
    """
    Objective on relations between the tokens of a layer (`{name}_word_pairs`, `{name}_word_triples`; averaged over
    layers) and between the layers of a token (`{name}_layer_pairs` and `{name}_layer_triples`, which need two and
    three mapped layers). This is contextual knowledge distillation (CKD). Widths may differ between the models, but
    not between the layers of a model.

    Args:
        window (`int`, *optional*, defaults to 2): Window of the token triples, see [`CKDTripleLoss`].
        name (`str`, *optional*, defaults to `"context"`), kwargs: See [`HiddenStates`].
    """

    @checked
    def __init__(self, window: int = 2, name: str = "context", **kwargs) -> None:
        super().__init__(CKDPairLoss(), name=name, **kwargs)
        self.words = {"pairs": CKDPairLoss(), "triples": CKDTripleLoss(window)}
        self.depth = {"pairs": CKDPairLoss(), "triples": CKDTripleLoss()}

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        names = ["word_pairs", "word_triples", "layer_pairs", "layer_triples"][: 2 + min(len(layers) - 1, 2)]
        return {f"{self.name}_{name}": layers for name in names}

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        mask = self.mask(inputs)
        # Each part reads all layers.
        student_states, teacher_states = next(iter(self._states(student, teacher).values()))
        losses = {}
        # Relations between the tokens of a layer.
        for group, loss in self.words.items():
            layer_losses = []
            for student_hidden, teacher_hidden in zip(student_states, teacher_states, strict=True):
                layer_losses.append(loss(student_hidden, teacher_hidden, mask))
            losses[f"{self.name}_word_{group}"] = torch.stack(layer_losses).mean()
        # Relations between the layers of a token: the items are layers, the rows are tokens.
        student_layers = torch.stack(student_states, 2).flatten(0, 1)
        teacher_layers = torch.stack(teacher_states, 2).flatten(0, 1)
        if mask is not None:
            mask = mask.flatten().unsqueeze(1).expand(-1, len(student_states))
        for group, loss in self.depth.items():
            name = f"{self.name}_layer_{group}"
            if name in self.parts:
                losses[name] = loss(student_layers, teacher_layers, mask)
        return losses

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        mask = self.mask(inputs)
        if mask is None:
            return dict.fromkeys(self.parts)
        # Each token has the same number of pairs and triples of layers.
        num_items = dict.fromkeys(self.parts, mask.sum())
        for group, loss in self.words.items():
            num_items[f"{self.name}_word_{group}"] = loss.count(mask)
        return num_items

"""What becomes of heads that are pruned while a model is trained: gates close them, or they are cut at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from ..models.architecture import cut_heads, find_encoder, layer_parts
from ..models.slicing import fit_heads, note_cut_heads, slice_heads
from .cutting import prune_heads, update_student
from .gates import HeadGates


class GateClosing:
    """
    Gates close pruned heads, which are cut when the training has ended. Heads are counted as the model had them when
    the training began, here and in [`CutClosing`].
    """

    def __init__(self) -> None:
        self.model: nn.Module | None = None
        """The model of the last training."""
        self._gates: HeadGates | None = None

    def expect(self, model: nn.Module) -> None:
        """Prepares a model for the weights of a checkpoint, before there is a training."""

    def check(self, args: TrainingArguments, min_heads_per_layer: int, optimizer: Any) -> None:
        """Raises `ValueError` for a training that cannot be pruned so."""

    def begin(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> list[int]:
        """
        Closes the pruned heads of a checkpoint, or of the model's last training; returns how many heads each layer
        has, the closed ones too.
        """
        if self.model is not model:
            self.model, self._gates = model, HeadGates(model)
        self.restore(model, closed)
        return [parts.num_heads for parts in layer_parts(model)]

    def restore(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> None:
        """Closes these heads and opens all others, to fit the weights of another checkpoint."""
        self._gates.open()
        self._gates.close(closed)

    def close(self, model: nn.Module, closed: Mapping[int, Sequence[int]], optimizer: Any) -> None:
        """Closes more heads; `closed` has the earlier ones as well."""
        self._gates.close(closed)

    def all_heads(self, scores: Tensor) -> Tensor:
        """Scores of the model's heads with a place for each head of the beginning."""
        return scores

    def smaller(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> nn.Module:
        """A copy of the model without the closed heads, in a form that saves and loads."""
        return prune_heads(model, closed)


class CutClosing(GateClosing):
    """Linear layers lose pruned heads at once, and the optimiser its averages for them: steps get faster."""

    def __init__(self) -> None:
        super().__init__()
        self._present: list[list[int]] = []
        self._totals: list[int] = []
        self._cut_before: list[list[int]] | None = None

    def expect(self, model: nn.Module) -> None:
        self._cut_before = cut_heads(model)
        # `Trainer` loads checkpoints before any callback hears of it.
        model.register_load_state_dict_pre_hook(fit_heads)

    def check(self, args: TrainingArguments, min_heads_per_layer: int, optimizer: Any) -> None:
        if args.world_size > 1 or getattr(args, "deepspeed", None):
            raise ValueError(
                'Several processes (DDP, DeepSpeed) keep buffers of the shape of all weights: `mode="slice"` is for '
                'one process, train with `mode="mask"`.'
            )
        if not min_heads_per_layer:
            raise ValueError(
                'Some encoders do not run with a layer without heads: `mode="slice"` needs `min_heads_per_layer` of 1.'
            )
        optimizer = getattr(optimizer, "optimizer", optimizer)
        if not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD):
            raise ValueError(
                f'`mode="slice"` cuts the state of AdamW, Adam and SGD, not that of {type(optimizer).__name__}: '
                'choose another `optim`, or `mode="mask"`.'
            )

    def begin(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> list[int]:
        if not closed or self._cut_before is None:
            self._cut_before = cut_heads(model)
        self.model = model
        self.restore(model, closed)
        return self._totals

    def restore(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> None:
        # The weights of the checkpoint have brought their shapes along, see `fit_heads`.
        self._totals = [parts.num_heads + len(closed.get(layer, ())) for layer, parts in enumerate(layer_parts(model))]
        self._present = [_without(total, closed.get(layer, ())) for layer, total in enumerate(self._totals)]
        find_encoder(model).config.cut_heads = self._cut_before
        self._note(model, closed)

    def close(self, model: nn.Module, closed: Mapping[int, Sequence[int]], optimizer: Any) -> None:
        cut = {}
        for layer, parts in enumerate(layer_parts(model)):
            present = self._present[layer]
            kept = [place for place, head in enumerate(present) if head not in closed.get(layer, ())]
            if len(kept) < len(present):
                slice_heads(parts, kept, optimizer)
                cut[layer] = _without(len(present), kept)
                self._present[layer] = [present[place] for place in kept]
        self._note(model, cut)

    def _note(self, model: nn.Module, cut: Mapping[int, Iterable[int]]) -> None:
        note_cut_heads(model, cut)
        encoder = find_encoder(model)
        if encoder.config.model_type == "mwp_student":
            update_student(encoder)

    def all_heads(self, scores: Tensor) -> Tensor:
        array = scores.new_full((len(scores), max(self._totals)), torch.nan)
        for layer, heads in enumerate(self._present):
            array[layer, heads] = scores[layer, : len(heads)]
        return array

    def smaller(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> nn.Module:
        smaller = prune_heads(model, {})
        for key in _fitting_hooks(smaller):
            del smaller._load_state_dict_pre_hooks[key]
        return smaller


def cuts_while_training(model: nn.Module) -> bool:
    """Whether a trainer of the model has [`CutClosing`], in whatever order its callbacks stand."""
    return bool(_fitting_hooks(model))


def _fitting_hooks(model: nn.Module) -> list[int]:
    return [key for key, hook in model._load_state_dict_pre_hooks.items() if hook.hook is fit_heads]


def _without(count: int, gone: Iterable[int]) -> list[int]:
    gone = {*gone}
    return [index for index in range(count) if index not in gone]


CLOSINGS = {"mask": GateClosing, "slice": CutClosing}
"""When heads are cut, as [`HeadPruningCallback`] takes it."""


__all__ = ["CLOSINGS", "CutClosing", "GateClosing", "cuts_while_training"]

"""Pruning modes of [`HeadPruningCallback`]: heads are masked by gates until the end, or sliced at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from ..models.architecture import cut_heads, find_encoder, layer_parts
from ..models.cut_model import resize_heads, slice_heads
from ..models.pruned_form import record_pruning
from .cutting import forget_resizing
from .gates import HeadGates
from .pruned_saving import restore_saving


class MaskMode:
    """Pruning mode `"mask"`: gates close heads until the training ends. Heads are counted as when it began."""

    def __init__(self) -> None:
        self.model: nn.Module | None = None
        """Model of the last training."""

    def prepare_loading(self, model: nn.Module) -> None:
        """Prepare a model for loading the weights of a checkpoint, before the training begins."""

    def check_training(self, args: TrainingArguments, min_heads_per_layer: int, optimizer: Any) -> None:
        """Raise `ValueError` if this mode does not support the training."""

    def begin(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> int:
        """Close the heads of a checkpoint or of the last training, and return the total number of heads."""
        if self.model is not model:
            self.model, self._gates = model, HeadGates(model)
        self.restore(closed)
        return sum(parts.num_heads for parts in layer_parts(model))

    @property
    def closed(self) -> dict[int, list[int]]:
        """Closed heads by layer; layers without closed heads are left out."""
        found = [] if self.model is None else HeadGates.closed_on(self.model)
        return {layer: sorted(closed) for layer, closed in enumerate(found) if closed}

    def undo(self) -> None:
        """Remove everything that was attached to the model: closed heads open again, removed heads stay removed."""
        if self.model is not None:
            restore_saving(self.model)
            self._gates.remove()
            self.model = None

    def restore(self, closed: Mapping[int, Sequence[int]]) -> None:
        """Close these heads and open all others, to match the weights of a checkpoint."""
        self._gates.open()
        self._gates.close(closed)

    def close(self, closed: Mapping[int, Sequence[int]], optimizer: Any) -> None:
        """Mask the heads in `closed`, which also contains all heads masked before."""
        self._gates.close(closed)

    def all_heads(self, scores: Tensor) -> Tensor:
        """Return the scores with a column for each head that the model had when the training began."""
        return scores


class SliceMode(MaskMode):
    """Pruning mode `"slice"`: heads are removed from layers and optimiser state at once, so that steps get faster."""

    def __init__(self) -> None:
        super().__init__()
        self._cut_before: list[list[int]] | None = None

    def prepare_loading(self, model: nn.Module) -> None:
        if self.model is not model:
            self._cut_before = cut_heads(model)
        # `Trainer` loads checkpoints before it calls any callback.
        model.register_load_state_dict_pre_hook(resize_heads)

    def check_training(self, args: TrainingArguments, min_heads_per_layer: int, optimizer: Any) -> None:
        optimizer, fault = getattr(optimizer, "optimizer", optimizer), None
        if args.world_size > 1 or getattr(args, "deepspeed", None):
            fault = "supports only one process. Train without DDP and DeepSpeed"
        elif not min_heads_per_layer:
            fault = "needs `min_heads_per_layer` of at least 1"
        elif not isinstance(optimizer, torch.optim.Adam | torch.optim.AdamW | torch.optim.SGD):
            fault = f"supports AdamW, Adam and SGD, not {type(optimizer).__name__}. Set a different `optim`"
        if fault is not None:
            raise ValueError(f'`mode="slice"` {fault}, or train with `mode="mask"`.')

    def begin(self, model: nn.Module, closed: Mapping[int, Sequence[int]]) -> int:
        if self._cut_before is None or (self.model is not model and not closed):
            self._cut_before = cut_heads(model)
        if not cuts_while_training(model):
            # The callback was added after the trainer was created.
            model.register_load_state_dict_pre_hook(resize_heads)
        self.model = model
        self.restore(closed)
        return sum(len(left) + len(gone) for left, gone in self._heads())

    @property
    def closed(self) -> dict[int, list[int]]:
        found = [] if self.model is None else self._heads()
        return {layer: gone for layer, (_, gone) in enumerate(found) if gone}

    def undo(self) -> None:
        if self.model is not None:
            restore_saving(self.model)
            forget_resizing(self.model)
            self.model = None

    def restore(self, closed: Mapping[int, Sequence[int]]) -> None:
        # `resize_heads` has resized the layers to the shapes of the checkpoint.
        find_encoder(self.model).config.cut_heads = self._cut_before
        record_pruning(self.model, closed)

    def close(self, closed: Mapping[int, Sequence[int]], optimizer: Any) -> None:
        cut = {}
        for layer, (parts, (left, _)) in enumerate(zip(layer_parts(self.model), self._heads(), strict=True)):
            kept = [place for place, head in enumerate(left) if head not in closed.get(layer, ())]
            if len(kept) < len(left):
                slice_heads(parts, kept, optimizer)
                cut[layer] = [place for place in range(len(left)) if place not in kept]
        record_pruning(self.model, cut)

    def all_heads(self, scores: Tensor) -> Tensor:
        found = self._heads()
        array = scores.new_full((len(scores), max(len(left) + len(gone) for left, gone in found)), torch.nan)
        for layer, (left, _) in enumerate(found):
            array[layer, left] = scores[layer, : len(left)]
        return array

    def _heads(self) -> list[tuple[list[int], list[int]]]:
        """Return the remaining and the removed heads of each layer, by the config now and when the training began."""
        found = []
        for parts, before, now in zip(layer_parts(self.model), self._cut_before, cut_heads(self.model), strict=True):
            # Original indices of the heads at the beginning of the training; the positions are the indices used here.
            labels = [head for head in range(parts.num_heads + len(now)) if head not in before]
            left, gone = ([n for n, head in enumerate(labels) if (head in now) is cut] for cut in (False, True))
            found.append((left, gone))
        return found


def cuts_while_training(model: nn.Module) -> bool:
    """Return whether a callback of the model's trainer uses [`SliceMode`], whatever the order of callbacks."""
    return any(hook.hook is resize_heads for hook in model._load_state_dict_pre_hooks.values())


MODES = {"mask": MaskMode, "slice": SliceMode}
"""Values of `mode` in [`HeadPruningCallback`]."""

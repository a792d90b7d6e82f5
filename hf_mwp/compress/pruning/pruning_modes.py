"""Pruning modes of [`HeadPruningCallback`]: heads are masked by gates until the end, or sliced at once."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import TrainingArguments

from hf_mwp.compress.models.architecture import cut_heads, find_encoder, layer_parts
from hf_mwp.compress.models.cut_model import resize_heads, slice_heads
from hf_mwp.compress.models.pruned_form import record_pruning

from .cutting import forget_resizing
from .gates import HeadGates
from .head_bundles import head_groups
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
            self.model = model
            self._gates = HeadGates(model)
        self.restore(closed)
        return sum(linears.num_heads for linears in layer_parts(model))

    @property
    def closed(self) -> dict[int, list[int]]:
        """Closed heads by layer; layers without closed heads are left out."""
        if self.model is None:
            return {}
        closed_by_layer = HeadGates.closed_on(self.model)
        return {layer: sorted(heads) for layer, heads in enumerate(closed_by_layer) if heads}

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

    def groups(self) -> list[list[int]]:
        """Return the key-value group of each head that the model had when the training began."""
        return head_groups(self.model)


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
        # Accelerate wraps the optimizer.
        optimizer = getattr(optimizer, "optimizer", optimizer)
        fault = None
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
        return sum(len(remaining) + len(removed) for remaining, removed in self._heads())

    @property
    def closed(self) -> dict[int, list[int]]:
        if self.model is None:
            return {}
        return {layer: removed for layer, (_, removed) in enumerate(self._heads()) if removed}

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
        # Positions of the removed heads in the layers as they are now.
        removed_positions = {}
        layers = zip(layer_parts(self.model), self._heads(), strict=True)
        for layer, (linears, (remaining, _)) in enumerate(layers):
            closed_heads = closed.get(layer, ())
            open_positions = []
            removed_positions[layer] = []
            for position, head in enumerate(remaining):
                if head in closed_heads:
                    removed_positions[layer].append(position)
                else:
                    open_positions.append(position)
            if removed_positions[layer]:
                slice_heads(linears, open_positions, optimizer)
        record_pruning(self.model, removed_positions)

    def all_heads(self, scores: Tensor) -> Tensor:
        heads = self._heads()
        num_heads = max(len(remaining) + len(removed) for remaining, removed in heads)
        all_scores = scores.new_full((len(scores), num_heads), torch.nan)
        for layer, (remaining, _) in enumerate(heads):
            all_scores[layer, remaining] = scores[layer, : len(remaining)]
        return all_scores

    def groups(self) -> list[list[int]]:
        config = find_encoder(self.model).config
        num_groups = getattr(config, "num_key_value_heads", None)
        queries_per_group = 1
        if num_groups is not None:
            queries_per_group = config.num_attention_heads // num_groups
        groups = []
        for original in self._original_heads():
            groups.append([head // queries_per_group for head in original])
        return groups

    def _original_heads(self) -> list[list[int]]:
        """Return the heads of each layer at the beginning of the training, by their indices in the unpruned model.
        Their positions in these lists are the indices that this class uses."""
        original_heads = []
        layers = zip(layer_parts(self.model), self._cut_before, cut_heads(self.model), strict=True)
        for linears, cut_before, cut_now in layers:
            num_heads = linears.num_heads + len(cut_now)
            original_heads.append([head for head in range(num_heads) if head not in cut_before])
        return original_heads

    def _heads(self) -> list[tuple[list[int], list[int]]]:
        """Return the remaining and the removed heads of each layer, by the config now and when the training began."""
        heads = []
        for original, cut_now in zip(self._original_heads(), cut_heads(self.model), strict=True):
            remaining = []
            removed = []
            for index, head in enumerate(original):
                if head in cut_now:
                    removed.append(index)
                else:
                    remaining.append(index)
            heads.append((remaining, removed))
        return heads


def cuts_while_training(model: nn.Module) -> bool:
    """Return whether a callback of the model's trainer uses [`SliceMode`], whatever the order of callbacks."""
    return any(hook.hook is resize_heads for hook in model._load_state_dict_pre_hooks.values())


MODES = {"mask": MaskMode, "slice": SliceMode}
"""Values of `mode` in [`HeadPruningCallback`]."""

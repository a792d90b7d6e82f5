"""Cuts heads and neurons out of the linear layers of a live model, with gradients and optimiser states."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from ..models.architecture import LayerParts, cut_heads, find_encoder, layer_parts


def slice_heads(parts: LayerParts, kept: Sequence[int], optimizer: torch.optim.Optimizer | None = None) -> None:
    """
    Leaves only some heads of a layer, in their order; parameters stay the same objects.

    Args:
        parts ([`LayerParts`]): The layer.
        kept (`Sequence[int]`): Heads to keep.
        optimizer (`torch.optim.Optimizer`, *optional*): Whose states of the parameters are cut alike.
    """
    if parts.query is None:
        return
    rows = torch.arange(parts.query.out_features).view(-1, parts.head_dim)[list(kept)].flatten()
    for linear in (parts.query, parts.key, parts.value):
        slice_outputs(linear, rows, optimizer)
    slice_inputs(parts.attention_output, rows, optimizer)


def slice_neurons(parts: LayerParts, kept: Sequence[int], optimizer: torch.optim.Optimizer | None = None) -> None:
    """Leaves only some neurons of a layer; see [`slice_heads`]."""
    if parts.intermediate is None:
        return
    rows = torch.tensor(list(kept), dtype=torch.long)
    slice_outputs(parts.intermediate, rows, optimizer)
    slice_inputs(parts.output, rows, optimizer)


def slice_outputs(linear: nn.Linear, rows: Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Leaves only some outputs of a linear layer."""
    for parameter in (linear.weight, linear.bias):
        if parameter is not None:
            _slice(parameter, 0, rows, optimizer)
    linear.out_features = len(rows)


def slice_inputs(linear: nn.Linear, columns: Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Leaves only some inputs of a linear layer."""
    _slice(linear.weight, 1, columns, optimizer)
    linear.in_features = len(columns)


def note_cut_heads(model: nn.Module, cut: Mapping[int, Iterable[int]]) -> None:
    """
    Adds heads that have been cut just now to those in the config of the encoder.

    Args:
        model (`nn.Module`): Without these heads.
        cut (`Mapping[int, Iterable[int]]`): By layer, the heads, as they were counted before they went.
    """
    noted = cut_heads(model)
    for layer, parts in enumerate(layer_parts(model)):
        gone = list(cut.get(layer, ()))
        total = parts.num_heads + len(gone) + len(noted[layer])
        labels = [head for head in range(total) if head not in noted[layer]]
        noted[layer] = sorted([*noted[layer], *(labels[head] for head in gone)])
    find_encoder(model).config.cut_heads = noted if any(noted) else None


def fit_heads(model: nn.Module, state_dict: Mapping[str, Tensor], *rest: Any) -> None:
    """
    Gives the linear layers of attention the shapes that they have in a state dict, with whatever values: a hook for
    `register_load_state_dict_pre_hook`.
    """
    names = {module: name for name, module in model.named_modules()}
    for parts in layer_parts(model):
        for linear in filter(None, (parts.query, parts.key, parts.value, parts.attention_output)):
            weight = state_dict.get(f"{names[linear]}.weight")
            # The other dimension is the encoder's width: that of another model remains an error.
            width = 0 if linear is parts.attention_output else 1
            if weight is None or weight.shape[width] != linear.weight.shape[width]:
                continue
            linear.out_features, linear.in_features = weight.shape
            linear.weight.data = linear.weight.new_zeros(weight.shape)
            if linear.bias is not None:
                linear.bias.data = linear.bias.new_zeros(len(weight))


def _slice(parameter: nn.Parameter, dim: int, index: Tensor, optimizer: torch.optim.Optimizer | None) -> None:
    index, before = index.to(parameter.device), parameter.shape
    state = {} if optimizer is None else optimizer.state.get(parameter, {})
    gradient, parameter.grad = parameter.grad, None
    parameter.data = parameter.data.index_select(dim, index)
    if gradient is not None:
        parameter.grad = gradient.index_select(dim, index)
    for name, value in state.items():
        # Averages of the gradient and its square; the step count is one number.
        if isinstance(value, Tensor) and value.shape == before:
            state[name] = value.index_select(dim, index)


__all__ = ["fit_heads", "note_cut_heads", "slice_heads", "slice_inputs", "slice_neurons", "slice_outputs"]

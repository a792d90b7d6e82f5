"""Cuts heads and neurons out of the linear layers of a live model, with gradients and optimiser states."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ..models.architecture import LayerParts


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


__all__ = ["slice_heads", "slice_inputs", "slice_neurons", "slice_outputs"]

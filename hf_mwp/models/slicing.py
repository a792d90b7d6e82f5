"""Functions that remove heads and neurons from a model in memory, with their gradients and optimiser states."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .architecture import LayerParts, cut_heads, layer_parts


class NoHeads(nn.Module):
    """Attention layer without heads, which returns contexts of width 0. It replaces layers that fail without heads."""

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        batch, length, _ = hidden_states.shape
        return hidden_states.new_empty(batch, length, 0), hidden_states.new_empty(batch, 0, length, length)


def slice_heads(parts: LayerParts, kept: Sequence[int], optimizer: torch.optim.Optimizer | None = None) -> None:
    """
    Keep only the given heads of a layer, in their order. Parameters stay the same objects; the states that an
    optimiser has of them are sliced too.
    """
    if parts.num_heads:
        _keep(parts.head_projections, parts.attention_output, parts.num_heads, parts.head_dim, kept, optimizer)
        count_heads(parts)


def slice_neurons(parts: LayerParts, kept: Sequence[int], optimizer: torch.optim.Optimizer | None = None) -> None:
    """Keep only the given neurons of a layer; see [`slice_heads`]."""
    if parts.num_neurons:
        _keep(parts.neuron_projections, parts.output, parts.num_neurons, 1, kept, optimizer)


def count_heads(parts: LayerParts) -> None:
    """Update the number of heads that the attention module stores, if it stores one."""
    path = parts.architecture.attention
    if path is None:
        return
    if not parts.num_heads and not parts.architecture.attention_output.startswith(f"{path}."):
        parts.layer.set_submodule(path, NoHeads())
        return
    attention = parts.layer.get_submodule(path)
    attention.num_attention_heads = parts.num_heads
    attention.all_head_size = parts.num_heads * parts.head_dim


def share_bias(model: nn.Module) -> None:
    """Let each layer use its remaining heads of the relative position bias that all layers share, if there is one."""
    for parts, cut in zip(layer_parts(model), cut_heads(model), strict=True):
        if parts.architecture.biased_attention is None:
            continue
        attention = parts.layer.get_submodule(parts.architecture.biased_attention)
        if not hasattr(attention, "biased_heads"):
            attention.register_forward_pre_hook(_take_bias)
        attention.biased_heads = [head for head in range(parts.num_heads + len(cut)) if head not in cut]


def _take_bias(attention: nn.Module, args: tuple) -> tuple:
    states, mask, bias, *rest = args
    if bias.shape[1] != len(attention.biased_heads):
        # Indexing with a list would wait for its copy to the device.
        bias = torch.cat([bias[:, :0], *(bias.narrow(1, head, 1) for head in attention.biased_heads)], 1)
    return states, mask, bias, *rest


def fit_heads(model: nn.Module, state_dict: Mapping[str, Tensor], *rest: Any) -> None:
    """Resize attention layers to the shapes in a state dict; for `register_load_state_dict_pre_hook`."""
    names = {module: name for name, module in model.named_modules()}
    for parts in layer_parts(model):
        for linear in filter(None, (*parts.head_projections, parts.attention_output)):
            weight = state_dict.get(f"{names[linear]}.weight")
            # The other dimension is the encoder's width. If it differs, loading the state dict must fail.
            width = 0 if linear is parts.attention_output else 1
            if weight is None or weight.shape[width] != linear.weight.shape[width]:
                continue
            linear.out_features, linear.in_features = weight.shape
            linear.weight.data = linear.weight.new_zeros(weight.shape)
            if linear.bias is not None:
                linear.bias.data = linear.bias.new_zeros(len(weight))
        count_heads(parts)


def _keep(
    makers: Iterable[nn.Linear], reader: nn.Linear, count: int, width: int, kept: Sequence[int], optimizer
) -> None:
    """Keep some of `count` units of `width` columns: outputs of `makers` and inputs of `reader`."""
    for linear in makers:
        # A fused layer has all queries, then all keys, then all values.
        rows = torch.arange(linear.out_features).view(-1, count, width)[:, list(kept)].flatten()
        for parameter in linear.parameters():
            _slice(parameter, 0, rows, optimizer)
        linear.out_features = len(rows)
    columns = torch.arange(reader.in_features).view(count, width)[list(kept)].flatten()
    _slice(reader.weight, 1, columns, optimizer)
    reader.in_features = len(columns)


def _slice(parameter: nn.Parameter, dim: int, index: Tensor, optimizer: torch.optim.Optimizer | None) -> None:
    index, before = index.to(parameter.device), parameter.shape
    gradient, parameter.grad = parameter.grad, None
    parameter.data = parameter.data.index_select(dim, index)
    if gradient is not None:
        parameter.grad = gradient.index_select(dim, index)
    state = {} if optimizer is None else optimizer.state.get(parameter, {})
    for name, value in state.items():
        # Slice the averages of the gradient and its square, but not the step count.
        if isinstance(value, Tensor) and value.shape == before:
            state[name] = value.index_select(dim, index)

"""Bottleneck networks after layers of an encoder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init


class Bottleneck(nn.Module):
    """
    Two linear layers without activation, from the encoder's width to a smaller one and back.

    They start as a projection onto a random subspace (the rows of the first layer are orthonormal, the second is its
    transpose), so that a pretrained encoder keeps most of what it computes when they are put in.

    Args:
        hidden_size (`int`): Width of the encoder, `m`.
        bottleneck_size (`int`): The smaller width, `n`.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), "Bottleneck Network".
    """

    def __init__(self, hidden_size: int, bottleneck_size: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(hidden_size, bottleneck_size)
        # Parameters and not a layer: transformers initialises only modules that have parameters of their own, and this
        # one must be, after its parts.
        self.expand_weight = nn.Parameter(torch.empty(hidden_size, bottleneck_size))
        self.expand_bias = nn.Parameter(torch.empty(hidden_size))

    def init_weights(self) -> None:
        """The start described above; within `from_pretrained`, loaded weights are left as they are."""
        init.orthogonal_(self.reduce.weight)
        init.copy_(self.expand_weight, self.reduce.weight.T)
        init.zeros_(self.reduce.bias)
        init.zeros_(self.expand_bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """States `(..., m)` of a layer to those `(..., m)` that the next one reads."""
        return nn.functional.linear(self.reduce(hidden_states), self.expand_weight, self.expand_bias)

    def replace_output(self, layer: nn.Module, inputs: tuple, output):
        """Forward hook of an encoder layer, whose output is the states or a tuple that begins with them."""
        return (self(output[0]), *output[1:]) if isinstance(output, tuple) else self(output)


class Bottlenecks(nn.ModuleDict):
    """
    The bottleneck networks of an encoder, by layer. The encoder itself is not changed: they stand in forward hooks,
    which [`detach_bottlenecks`] takes away again.

    Args:
        encoder (`nn.Module`): A BERT-like encoder whose layers are one `nn.ModuleList`.
        layers (`Iterable[int]`): After which layers, from 1.
        hidden_size (`int`): Width of the encoder.
        bottleneck_size (`int`): Width in the middle.

    Raises:
        ValueError: the encoder's layers are not found.
    """

    def __init__(self, encoder: nn.Module, layers: Iterable[int], hidden_size: int, bottleneck_size: int) -> None:
        super().__init__({str(layer): Bottleneck(hidden_size, bottleneck_size) for layer in layers})
        blocks = encoder_layers(encoder)
        for layer, bottleneck in self.items():
            # First, so that hooks which record hidden states see what the next layer reads.
            blocks[int(layer) - 1].register_forward_hook(bottleneck.replace_output, prepend=True)

    @contextmanager
    def recorded(self) -> Iterator[list[Tensor]]:
        """While inside, a list to which each bottleneck adds its narrow states `(batch, tokens, n)`."""
        states: list[Tensor] = []
        hooks = [
            bottleneck.reduce.register_forward_hook(lambda module, inputs, output: states.append(output))
            for bottleneck in self.values()
        ]
        try:
            yield states
        finally:
            for hook in hooks:
                hook.remove()


def detach_bottlenecks(encoder: nn.Module) -> None:
    """Remove the bottleneck networks from an encoder; its outputs are then those without them."""
    for module, key, _ in list(bottleneck_hooks(encoder)):
        del module._forward_hooks[key]


@contextmanager
def bottlenecks_apart(encoder: nn.Module) -> Iterator[dict[int, Bottleneck]]:
    """While inside, an encoder computes without its bottleneck networks; gives them by layer, from 1."""
    hooks = list(bottleneck_hooks(encoder))
    layers = list(encoder_layers(encoder)) if hooks else []
    detach_bottlenecks(encoder)
    try:
        yield {layers.index(module) + 1: hook.__self__ for module, _, hook in hooks}
    finally:
        for module, key, hook in hooks:
            module._forward_hooks[key] = hook
            module._forward_hooks.move_to_end(key, last=False)


def bottleneck_hooks(encoder: nn.Module) -> Iterator[tuple[nn.Module, int, Any]]:
    """Yield the layers of an encoder with a bottleneck network, the key of its hook, and the hook."""
    for module in encoder.modules():
        for key, hook in module._forward_hooks.items():
            if isinstance(getattr(hook, "__self__", None), Bottleneck):
                yield module, key, hook


def encoder_layers(encoder: nn.Module) -> nn.ModuleList:
    """The transformer layers of an encoder; `ValueError` if no list of modules has as many as its config says."""
    count = encoder.config.num_hidden_layers
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return module
    raise ValueError(
        f"`{type(encoder).__name__}` has no list of {count} layers after which bottleneck networks could be put."
    )

"""Bottleneck networks: small linear networks after layers of an encoder."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from transformers import initialization as init


class Bottleneck(nn.Module):
    """
    Two linear layers without activation, from the encoder's width to a smaller one and back ("Bottleneck Network" of
    Ming et al., "A Compact Model for Mathematics Problem Representations Distilled from BERT", AAAI 2025).

    They start as a projection onto a random subspace (the first layer is orthonormal, the second one its transpose),
    so that a pretrained encoder keeps most of its information.
    """

    def __init__(self, hidden_size: int, bottleneck_size: int) -> None:
        super().__init__()
        self.reduce = nn.Linear(hidden_size, bottleneck_size)
        # Parameters instead of a layer, because Transformers initialises only modules with their own parameters, and
        # this module must be initialised after its first layer.
        self.expand_weight = nn.Parameter(torch.empty(hidden_size, bottleneck_size))
        self.expand_bias = nn.Parameter(torch.empty(hidden_size))

    def init_weights(self) -> None:
        """Initialise the weights, except loaded ones."""
        init.orthogonal_(self.reduce.weight)
        init.copy_(self.expand_weight, self.reduce.weight.T)
        init.zeros_(self.reduce.bias)
        init.zeros_(self.expand_bias)

    def forward(self, hidden_states: Tensor) -> Tensor:
        """Map the states `(..., m)` of a layer to the input `(..., m)` of the next layer."""
        return nn.functional.linear(self.reduce(hidden_states), self.expand_weight, self.expand_bias)

    def replace_output(self, layer: nn.Module, inputs: tuple, output):
        """Forward hook of an encoder layer, whose output is a tensor of states or a tuple that begins with it."""
        if isinstance(output, tuple):
            return (self(output[0]), *output[1:])
        return self(output)


class Bottlenecks(nn.ModuleDict):
    """Bottleneck networks after the given `layers` (from 1) of an encoder. They are called by forward hooks of the
    encoder's layers, which [`detach_bottlenecks`] removes again."""

    def __init__(self, encoder: nn.Module, layers: Iterable[int], bottleneck_size: int) -> None:
        super().__init__({str(layer): Bottleneck(encoder.config.hidden_size, bottleneck_size) for layer in layers})
        blocks = encoder_layers(encoder)
        for layer, bottleneck in self.items():
            # Prepended, so that hooks which record hidden states receive the input of the next layer.
            blocks[int(layer) - 1].register_forward_hook(bottleneck.replace_output, prepend=True)

    @contextmanager
    def recorded(self) -> Iterator[list[Tensor]]:
        """Context manager with a list to which bottleneck networks append their states `(batch, tokens, n)`."""
        states = []

        def record(module: nn.Module, inputs: tuple, output: Tensor) -> None:
            states.append(output)

        hooks = [bottleneck.reduce.register_forward_hook(record) for bottleneck in self.values()]
        try:
            yield states
        finally:
            for hook in hooks:
                hook.remove()


def detach_bottlenecks(encoder: nn.Module) -> None:
    """Remove the hooks of bottleneck networks from an encoder, so that it computes without them."""
    for module, key, _ in list(bottleneck_hooks(encoder)):
        del module._forward_hooks[key]


@contextmanager
def bottlenecks_apart(encoder: nn.Module) -> Iterator[dict[int, Bottleneck]]:
    """Context manager in which an encoder computes without its bottleneck networks, yielded by layer (from 1)."""
    hooks = list(bottleneck_hooks(encoder))
    bottlenecks = {}
    for module, _, hook in hooks:
        layer = list(encoder_layers(encoder)).index(module) + 1
        bottlenecks[layer] = hook.__self__
    detach_bottlenecks(encoder)
    try:
        yield bottlenecks
    finally:
        for module, key, hook in hooks:
            module._forward_hooks[key] = hook
            module._forward_hooks.move_to_end(key, last=False)


def bottleneck_hooks(encoder: nn.Module) -> Iterator[tuple[nn.Module, int, Any]]:
    """Yield each encoder layer with a bottleneck network, the key of the hook, and the hook."""
    for module in encoder.modules():
        for key, hook in module._forward_hooks.items():
            if isinstance(getattr(hook, "__self__", None), Bottleneck):
                yield module, key, hook


def encoder_layers(encoder: nn.Module) -> nn.ModuleList:
    """Return the transformer layers of an encoder. Raises `ValueError` if they are not in one module list."""
    num_layers = encoder.config.num_hidden_layers
    for module in encoder.modules():
        if isinstance(module, nn.ModuleList) and len(module) == num_layers:
            return module
    name = type(encoder).__name__
    raise ValueError(f"`{name}` has no `nn.ModuleList` of {num_layers} layers for bottleneck networks.")

"""Factors on attention heads and neurons, put on a live model and taken off it exactly."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import torch
from torch import Tensor, nn

from ..models.architecture import LayerParts, layer_parts


HEAD_GATE = "head_gate"
NEURON_GATE = "neuron_gate"


class Gates:
    """
    One factor for each head, or each neuron, of a model's encoder; 1 leaves it, 0 takes it away: outputs are then
    those of a model from which it is cut. The output projection of a sublayer gets a forward pre-hook, which
    multiplies its input, and keeps the factors in a non-persistent buffer: `state_dict` does not have them, a hash of
    the buffers does. It works with any attention implementation and any dtype; `values` may require gradients.

    Derived classes say which projection, and how many factors it has. Also a context manager, which takes them off.

    Args:
        model (`nn.Module`): A model with an encoder that [`~models.architecture.find_encoder`] knows.

    Raises:
        ValueError: an unknown encoder, or one that has such gates already.

    Example:

    ```python
    >>> with HeadGates(model) as gates:
    ...     gates.close({0: [3, 7]})  # heads 3 and 7 of the first layer
    ...     outputs = model(**batch)
    ```
    """

    buffer: str
    record: str
    """Name of the attribute that has the closed ones as a set: to know them, no device is waited for."""

    def __init__(self, model: nn.Module) -> None:
        self._modules: list[nn.Module | None] = []
        self._handles: list[torch.utils.hooks.RemovableHandle] = []
        found = [(self._projection(parts), self._count(parts)) for parts in layer_parts(model)]
        if any(module is not None and hasattr(module, self.buffer) for module, _ in found):
            raise ValueError(
                f"The model has gates of this kind ({self.buffer}) already: take them off (`gates.remove()`), or go "
                "on with `callback.pruned(model)` where they are those of a `HeadPruningCallback`."
            )
        for module, count in found:
            self._modules.append(module)
            if module is not None:
                factors = torch.ones(count, device=module.weight.device)
                module.register_buffer(self.buffer, factors, persistent=False)
                setattr(module, self.record, frozenset())
                self._handles.append(module.register_forward_pre_hook(self.multiply))

    @classmethod
    def found_on(cls, model: nn.Module) -> Gates | None:
        """The gates that a model has already; `remove` of what is returned leaves them on."""
        modules = [cls._projection(parts) for parts in layer_parts(model)]
        if not any(hasattr(module, cls.buffer) for module in modules):
            return None
        gates = cls.__new__(cls)
        gates._modules, gates._handles = modules, []
        return gates

    @classmethod
    def closed_on(cls, model: nn.Module) -> list[frozenset[int]]:
        """By layer, what gates of this kind have closed on a model, if it has any; no device is waited for."""
        return [getattr(cls._projection(parts), cls.record, frozenset()) for parts in layer_parts(model)]

    @property
    def values(self) -> list[Tensor | None]:
        """The factors of each layer, of shape `(count,)` or `(batch, count)`; `None` where there is nothing left."""
        return [None if module is None else getattr(module, self.buffer) for module in self._modules]

    @values.setter
    def values(self, values: Iterable[Tensor | None]) -> None:
        for module, value in zip(self._modules, values, strict=True):
            if module is not None:
                setattr(module, self.buffer, value)

    @property
    def closed(self) -> dict[int, list[int]]:
        """By layer, what has the factor 0; layers without such are left out."""
        found = {
            layer: value.eq(0).nonzero().flatten().tolist()
            for layer, value in enumerate(self.values)
            if value is not None
        }
        return {layer: indices for layer, indices in found.items() if indices}

    def close(self, chosen: Mapping[int, Iterable[int]]) -> None:
        """
        Sets factors to 0.

        Args:
            chosen (`Mapping[int, Iterable[int]]`): By layer, the heads or neurons.

        Raises:
            ValueError: there is no such layer, head or neuron.
        """
        check_indices(chosen, [0 if value is None else value.shape[-1] for value in self.values])
        with torch.no_grad():
            for layer, indices in chosen.items():
                module = self._modules[layer]
                if module is not None:
                    getattr(module, self.buffer)[..., list(indices)] = 0.0
                    setattr(module, self.record, getattr(module, self.record) | {*indices})

    def open(self) -> None:
        """Sets all factors to 1."""
        for module in self._modules:
            if module is not None:
                getattr(module, self.buffer).fill_(1.0)
                setattr(module, self.record, frozenset())

    def remove(self) -> None:
        """Takes hooks and factors off; a second call does nothing."""
        for handle in self._handles:
            handle.remove()
        for module in self._modules if self._handles else ():
            if module is not None:
                delattr(module, self.buffer)
                delattr(module, self.record)
        self._handles = []

    def __enter__(self) -> Gates:
        return self

    def __exit__(self, *error) -> None:
        self.remove()

    @staticmethod
    def _projection(parts: LayerParts) -> nn.Module | None:
        raise NotImplementedError

    @staticmethod
    def _count(parts: LayerParts) -> int:
        raise NotImplementedError

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        raise NotImplementedError


class HeadGates(Gates):
    """[`Gates`] on the contexts of attention heads, before the output projection."""

    buffer = HEAD_GATE
    record = "closed_heads"

    @staticmethod
    def _projection(parts: LayerParts) -> nn.Module | None:
        return parts.attention_output if parts.num_heads else None

    @staticmethod
    def _count(parts: LayerParts) -> int:
        return parts.num_heads

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        context, *rest = args
        gate = getattr(module, HEAD_GATE).to(context.dtype)
        heads = context.unflatten(-1, (gate.shape[-1], -1))
        # One row of factors for each example, or one for all.
        gate = gate[..., None] if gate.dim() == 1 else gate[:, None, :, None]
        return (heads * gate).flatten(-2), *rest


class NeuronGates(Gates):
    """[`Gates`] on the activations of feed-forward neurons, before the second linear layer."""

    buffer = NEURON_GATE
    record = "closed_neurons"

    @staticmethod
    def _projection(parts: LayerParts) -> nn.Module | None:
        return parts.output if parts.num_neurons else None

    @staticmethod
    def _count(parts: LayerParts) -> int:
        return parts.num_neurons

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        activations, *rest = args
        gate = getattr(module, NEURON_GATE).to(activations.dtype)
        return activations * (gate if gate.dim() == 1 else gate[:, None]), *rest


def check_indices(chosen: Mapping[int, Iterable[int]], counts: list[int]) -> None:
    """Raises `ValueError` for layers, heads or neurons that there are not; `counts` has how many each layer has."""
    for layer, indices in chosen.items():
        if not 0 <= layer < len(counts):
            raise ValueError(f"There is no layer {layer}: the encoder has layers 0 to {len(counts) - 1}.")
        wrong = [index for index in indices if not 0 <= index < counts[layer]]
        if wrong:
            raise ValueError(f"Layer {layer} has no {wrong[0]}: it has {counts[layer]}, counted from 0.")


__all__ = ["Gates", "HeadGates", "NeuronGates", "check_indices"]

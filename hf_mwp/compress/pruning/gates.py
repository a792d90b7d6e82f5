"""Gates (factors between 0 and 1) on attention heads and neurons. The gates can be removed from a model again."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.checked_types import checked


class Gates:
    """
    Factors between 0 (closed) and 1 for the heads, or the neurons, of a supported encoder; use the derived classes. A
    forward pre-hook of each output projection multiplies its input by the factors, a non-persistent buffer:
    `state_dict` does not contain them, but a hash of the buffers does. `values` may require gradients. A `with` block
    removes its gates at its end: `with HeadGates(model) as gates: gates.close({0: [3, 7]})` (heads 3 and 7 of the
    first layer). Raises `ValueError` if the encoder type is not supported, or has gates of this kind.
    """

    buffer: str
    record: str
    """Attribute of the projection with the indices of closed units, readable without waiting for the device."""
    projection: str
    count: str

    @checked
    def __init__(self, model: nn.Module) -> None:
        self._modules = self._projections(model)
        if any(hasattr(module, self.buffer) for module in self._modules):
            raise ValueError(
                f"The model already has gates of this kind ({self.buffer}). Remove them (`gates.remove()`), or use "
                "`callback.pruned(model)` if they belong to a `HeadPruningCallback`."
            )
        for module, linears in zip(self._modules, layer_parts(model), strict=True):
            if module is not None:
                factors = torch.ones(getattr(linears, self.count), device=module.weight.device)
                module.register_buffer(self.buffer, factors, persistent=False)
                setattr(module, self.record, frozenset())
                module.register_forward_pre_hook(self.multiply)

    @classmethod
    def found_on(cls, model: nn.Module) -> Gates | None:
        """Return the gates that a model already has, such as a copy of a model with gates, or `None`."""
        modules = cls._projections(model)
        if not any(hasattr(module, cls.buffer) for module in modules):
            return None
        gates = cls.__new__(cls)
        gates._modules = modules
        return gates

    @classmethod
    def closed_on(cls, model: nn.Module) -> list[frozenset[int]]:
        """Return the indices closed by gates of this kind in each layer of a model."""
        return [getattr(module, cls.record, frozenset()) for module in cls._projections(model)]

    @property
    def values(self) -> list[Tensor]:
        """Factors of each layer, of shape `(count,)` or `(batch, count)`; empty for layers without units."""
        values = []
        for module in self._modules:
            factors = torch.ones(0) if module is None else getattr(module, self.buffer)
            values.append(factors)
        return values

    @values.setter
    def values(self, values: Iterable[Tensor]) -> None:
        for module, value in zip(self._modules, values, strict=True):
            if module is not None:
                setattr(module, self.buffer, value)

    @torch.no_grad()
    def close(self, chosen: Mapping[int, Iterable[int]]) -> None:
        """Set the factors of heads or neurons to 0, given by layer. Raises `ValueError` if one does not exist."""
        num_units = [value.shape[-1] for value in self.values]
        for layer, indices in check_indices(chosen, num_units).items():
            module = self._modules[layer]
            if module is not None:
                getattr(module, self.buffer)[..., indices] = 0.0
                setattr(module, self.record, getattr(module, self.record) | {*indices})

    def open(self) -> None:
        """Set all factors to 1."""
        for module in self._modules:
            if module is not None:
                getattr(module, self.buffer).fill_(1.0)
                setattr(module, self.record, frozenset())

    def remove(self) -> None:
        """Remove hooks and factors. A second call does nothing."""
        for module in self._modules:
            if hasattr(module, self.buffer):
                delattr(module, self.buffer)
                delattr(module, self.record)
                for key, hook in list(module._forward_pre_hooks.items()):
                    if hook is self.multiply:
                        del module._forward_pre_hooks[key]

    def __enter__(self) -> Gates:
        return self

    def __exit__(self, *error) -> None:
        self.remove()

    @classmethod
    def _projections(cls, model: nn.Module) -> list[nn.Module | None]:
        modules = []
        for linears in layer_parts(model):
            has_units = getattr(linears, cls.count) > 0
            projection = getattr(linears, cls.projection) if has_units else None
            modules.append(projection)
        return modules

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        raise NotImplementedError


class HeadGates(Gates):
    """[`Gates`] on the contexts of attention heads, before the output projection."""

    buffer = "head_gate"
    record = "closed_heads"
    projection = "attention_output"
    count = "num_heads"

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        context, *rest = args
        gate = module.head_gate.to(context.dtype)
        heads = context.unflatten(-1, (gate.shape[-1], -1))
        # Factors are shared by all examples, or differ for each.
        if gate.dim() == 1:
            gate = gate[..., None]
        else:
            gate = _of_texts(gate, len(heads))[:, None, :, None]
        return (heads * gate).flatten(-2), *rest


class NeuronGates(Gates):
    """[`Gates`] on the activations of feed-forward neurons, before the second linear layer."""

    buffer = "neuron_gate"
    record = "closed_neurons"
    projection = "output"
    count = "num_neurons"

    @staticmethod
    def multiply(module: nn.Module, args: tuple) -> tuple:
        activations, *rest = args
        gate = module.neuron_gate.to(activations.dtype)
        if gate.dim() > 1:
            gate = _of_texts(gate, len(activations))[:, None]
        return activations * gate, *rest


def _of_texts(factors: Tensor, num_texts: int) -> Tensor:
    """Return the factors of each text. An example of multiple choice has several texts."""
    num_examples = len(factors)
    return factors if num_examples == num_texts else factors.repeat_interleave(num_texts // num_examples, 0)


def check_indices(chosen: Mapping[int, Iterable[int]], counts: list[int]) -> dict[int, list[int]]:
    """Return the indices, also those in tensors, as integers. Raises `ValueError` for layers, heads or neurons that do
    not exist; `counts` has the number in each layer."""
    checked_indices = {index(layer): [*map(index, indices)] for layer, indices in chosen.items()}
    for layer, indices in checked_indices.items():
        if not 0 <= layer < len(counts):
            raise ValueError(f"There is no layer {layer}. The encoder has layers 0 to {len(counts) - 1}.")
        for unit in indices:
            if not 0 <= unit < counts[layer]:
                raise ValueError(f"Layer {layer} has no index {unit}. Use indices from 0, below {counts[layer]}.")
    return checked_indices

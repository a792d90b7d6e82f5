"""Removal of heads and neurons from models, with results that `from_pretrained` loads."""

import copy
from collections.abc import Iterable, Mapping

from torch import nn

from hf_mwp.compress.models.architecture import count_units, layer_parts
from hf_mwp.compress.models.cut_model import resize_heads, slice_heads, slice_neurons
from hf_mwp.compress.models.pruned_form import record_pruning, to_pruned_class
from hf_mwp.utils.checked_types import checked

from .gates import Gates, HeadGates, NeuronGates, check_indices


@checked
def prune(
    model: nn.Module,
    heads: Mapping[int, Iterable[int]] | None = None,
    neurons: Mapping[int, Iterable[int]] | None = None,
) -> nn.Module:
    """
    Return a copy of a model without the given attention heads and feed-forward neurons.

    Args:
        model (`nn.Module`): A model with a supported encoder (see [`~models.architecture.find_encoder`]): the encoder
            itself, with a classification or masked language modelling head, a solver, a BART, mBART, Marian, Pegasus
            or M2M100, or a causal language model (Llama, Mistral, Qwen2, Qwen3, Gemma 2 and 3, Phi-3, GPT-2, GPT-NeoX)
            or a classifier of these types. It is not changed.
        heads (`Mapping[int, Iterable[int]]`, *optional*):
            Heads to remove from each layer; layers and heads are counted from 0. Heads closed by gates are removed
            too. If all heads of a layer are removed, the bias of the output projection remains. An encoder-decoder
            model has the encoder's layers first, then the decoder's self-attentions, then its cross-attentions. With
            grouped queries, a head is a query head, and each key-value group of a layer must keep equally many, or
            none: `heads_of_groups(model, {0: [1]})` are the heads of a group, and [`choose_heads`] chooses by scores.
        neurons (`Mapping[int, Iterable[int]]`, *optional*): Neurons to remove from each layer.

    Returns:
        The pruned model, whose outputs equal the outputs of a model with these heads and neurons gated to 0. BERT-like
        encoders, with or without a head, become an `MwpStudent*` with a number of heads for each layer in its config;
        other types become a [`~models.cut_model.CutModel`]. A solver keeps its decoder and bottleneck networks. The
        model is saved by `save_pretrained` and loaded by `from_pretrained`, with `trust_remote_code=True` if hf_mwp is
        not imported.

    Raises:
        ValueError: a layer, head or neuron does not exist, key-value groups would keep different numbers of heads, the
            encoder type is not supported, the model has adapters, or its class has no pruned counterpart (different
            heads, subclasses of Transformers models).

    Example:
        >>> smaller = prune(model, heads={0: [3, 7], 5: [0]}, neurons={0: range(100)})
        >>> smaller.save_pretrained("pruned")
    """
    num_heads, num_neurons = count_units(model)
    heads = check_indices(heads or {}, num_heads)
    neurons = check_indices(neurons or {}, num_neurons)
    closed_heads = HeadGates.closed_on(model)
    for layer, linears in enumerate(layer_parts(model)):
        linears.check_remaining(_without(linears.num_heads, {*closed_heads[layer], *heads.get(layer, ())}))
    smaller = copy.deepcopy(model)
    # Remove the hooks of a `HeadPruningCallback` and of gates from the copy.
    smaller.__dict__.pop("save_pretrained", None)
    forget_resizing(smaller)
    closed_heads = _remove_gates(HeadGates, smaller)
    closed_neurons = _remove_gates(NeuronGates, smaller)
    removed_heads = {}
    for layer, linears in enumerate(layer_parts(smaller)):
        removed_heads[layer] = {*closed_heads[layer], *heads.get(layer, ())}
        removed_neurons = {*closed_neurons[layer], *neurons.get(layer, ())}
        if removed_heads[layer]:
            slice_heads(linears, _without(linears.num_heads, removed_heads[layer]))
        if removed_neurons:
            slice_neurons(linears, _without(linears.num_neurons, removed_neurons))
    record_pruning(smaller, removed_heads)
    return to_pruned_class(smaller)


def _remove_gates(gate_class: type[Gates], model: nn.Module) -> list[frozenset[int]]:
    """Remove the gates of a class from a model, and return the closed units of each layer."""
    closed = gate_class.closed_on(model)
    gates = gate_class.found_on(model)
    if gates is not None:
        gates.remove()
    return closed


def _without(num_units: int, removed: set[int]) -> list[int]:
    return [unit for unit in range(num_units) if unit not in removed]


def forget_resizing(model: nn.Module) -> None:
    """Remove the hooks of a model that resize its layers to the weights that it loads ([`resize_heads`])."""
    hooks = model._load_state_dict_pre_hooks
    for key, hook in list(hooks.items()):
        if hook.hook is resize_heads:
            del hooks[key]


@checked
def heads_of_groups(model: nn.Module, groups: Mapping[int, Iterable[int]]) -> dict[int, list[int]]:
    """Return the heads of key-value groups, given by layer, as [`prune`] takes them. Raises `ValueError` for layers
    and groups that do not exist."""
    layers = layer_parts(model)
    groups = check_indices(groups, [linears.num_groups for linears in layers])
    heads = {}
    for layer, layer_groups in groups.items():
        queries_per_group = layers[layer].queries_per_group
        heads[layer] = []
        for group in sorted(layer_groups):
            first_head = group * queries_per_group
            heads[layer] += range(first_head, first_head + queries_per_group)
    return heads


@checked
def prune_heads(model: nn.Module, heads: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given attention heads; see [`prune`]."""
    return prune(model, heads=heads)


@checked
def prune_neurons(model: nn.Module, neurons: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given feed-forward neurons; see [`prune`]."""
    return prune(model, neurons=neurons)

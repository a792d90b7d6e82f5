"""Removal of heads and neurons from models, with results that `from_pretrained` loads."""

import copy
from collections.abc import Iterable, Mapping

from torch import nn

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.models.cut_model import resize_heads, slice_heads, slice_neurons
from hf_mwp.compress.models.pruned_form import record_pruning, to_pruned_class
from hf_mwp.utils.checked_types import checked

from .gates import HeadGates, NeuronGates, check_indices


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
            itself, with a classification or masked language modelling head, a solver, or a BART, mBART, Marian,
            Pegasus or M2M100. It is not changed.
        heads (`Mapping[int, Iterable[int]]`, *optional*):
            Heads to remove from each layer; layers and heads are counted from 0. Heads closed by gates are removed
            too. If all heads of a layer are removed, the bias of the output projection remains. An encoder-decoder
            model has the encoder's layers first, then the decoder's self-attentions, then its cross-attentions.
        neurons (`Mapping[int, Iterable[int]]`, *optional*): Neurons to remove from each layer.

    Returns:
        The pruned model, whose outputs equal the outputs of a model with these heads and neurons gated to 0. BERT-like
        encoders, with or without a head, become an `MwpStudent*` with a number of heads for each layer in its config;
        other types become a [`~models.cut_model.CutModel`]. A solver keeps its decoder and bottleneck networks. The
        model is saved by `save_pretrained` and loaded by `from_pretrained`, with `trust_remote_code=True` if hf_mwp is
        not imported.

    Raises:
        ValueError: a layer, head or neuron does not exist, the encoder type is not supported, the model has adapters,
            or its class has no pruned counterpart (different heads, subclasses of Transformers models).

    Example:
        >>> smaller = prune(model, heads={0: [3, 7], 5: [0]}, neurons={0: range(100)})
        >>> smaller.save_pretrained("pruned")
    """
    parts = layer_parts(model)
    heads = check_indices(heads or {}, [each.num_heads for each in parts])
    neurons = check_indices(neurons or {}, [each.num_neurons for each in parts])
    smaller = copy.deepcopy(model)
    # Remove the hooks of a `HeadPruningCallback` and of gates from the copy.
    smaller.__dict__.pop("save_pretrained", None)
    forget_resizing(smaller)
    gone = []
    for kind, chosen in ((HeadGates, heads), (NeuronGates, neurons)):
        gone.append([{*closed, *chosen.get(layer, ())} for layer, closed in enumerate(kind.closed_on(smaller))])
        if gates := kind.found_on(smaller):
            gates.remove()
    for each, gone_heads, gone_neurons in zip(layer_parts(smaller), *gone, strict=True):
        if gone_heads:
            slice_heads(each, [head for head in range(each.num_heads) if head not in gone_heads])
        if gone_neurons:
            slice_neurons(each, [neuron for neuron in range(each.num_neurons) if neuron not in gone_neurons])
    record_pruning(smaller, dict(enumerate(gone[0])))
    return to_pruned_class(smaller)


def forget_resizing(model: nn.Module) -> None:
    """Remove the hooks of a model that resize its layers to the weights that it loads ([`resize_heads`])."""
    hooks = model._load_state_dict_pre_hooks
    for key in [key for key, hook in hooks.items() if hook.hook is resize_heads]:
        del hooks[key]


@checked
def prune_heads(model: nn.Module, heads: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given attention heads; see [`prune`]."""
    return prune(model, heads=heads)


@checked
def prune_neurons(model: nn.Module, neurons: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given feed-forward neurons; see [`prune`]."""
    return prune(model, neurons=neurons)

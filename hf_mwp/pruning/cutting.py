"""Removal of heads and neurons from models, with results that `from_pretrained` loads."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from ..data.training_lineage import inherit_training_texts
from ..models.architecture import CUT_PREFIX, cut_heads, find_encoder, layer_parts
from ..models.cut_model import cut_class, stock_models
from ..models.mwp_solver import MwpSolver
from ..models.mwp_solver.bottlenecks import detach_bottlenecks
from ..models.mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from ..models.mwp_student.conversion_mwp_student import SOURCES
from ..models.mwp_student.layers_mwp_student import MwpStudentBias
from ..models.slicing import fit_heads, note_cut_heads, slice_heads, slice_neurons
from .gates import HeadGates, NeuronGates, check_indices


# Students by the Auto class that loads the Transformers model which they replace.
STUDENTS = {
    "AutoModel": MwpStudentModel,
    "AutoModelForSequenceClassification": MwpStudentForSequenceClassification,
    "AutoModelForMaskedLM": MwpStudentForMaskedLM,
}
NOT_OF_STOCK_CONFIGS = {"model_type", "cut_heads", "neurons_per_layer"}


def prune(
    model: nn.Module,
    heads: Mapping[int, Iterable[int]] | None = None,
    neurons: Mapping[int, Iterable[int]] | None = None,
) -> nn.Module:
    """
    Return a copy of a model without the given attention heads and feed-forward neurons.

    Args:
        model (`nn.Module`):
            A model with a supported encoder (see [`~models.architecture.find_encoder`]): the encoder itself, with a
            classification or masked language modelling head, a solver, or a BART, mBART, Marian, Pegasus or M2M100. It
            is not changed.
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

    ```python
    >>> smaller = prune(model, heads={0: [3, 7], 5: [0]}, neurons={0: range(100)})
    >>> smaller.save_pretrained("pruned")
    ```
    """
    parts = layer_parts(model)
    check_indices(heads or {}, [each.num_heads for each in parts])
    check_indices(neurons or {}, [each.num_neurons for each in parts])
    smaller = copy.deepcopy(model)
    # Remove the hooks of a `HeadPruningCallback` and of gates from the copy.
    smaller.__dict__.pop("save_pretrained", None)
    hooks = smaller._load_state_dict_pre_hooks
    for key in [key for key, hook in hooks.items() if hook.hook is fit_heads]:
        del hooks[key]
    gone = []
    for kind, chosen in ((HeadGates, heads or {}), (NeuronGates, neurons or {})):
        gone.append([{*closed, *chosen.get(layer, ())} for layer, closed in enumerate(kind.closed_on(smaller))])
        gates = kind.found_on(smaller)
        if gates is not None:
            gates.remove()
    for each, gone_heads, gone_neurons in zip(layer_parts(smaller), *gone, strict=True):
        if gone_heads:
            slice_heads(each, [head for head in range(each.num_heads) if head not in gone_heads])
        if gone_neurons:
            slice_neurons(each, [neuron for neuron in range(each.num_neurons) if neuron not in gone_neurons])
    note_cut_heads(smaller, dict(enumerate(gone[0])))
    return _to_saved_form(smaller)


def prune_heads(model: nn.Module, heads: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given attention heads; see [`prune`]."""
    return prune(model, heads=heads)


def prune_neurons(model: nn.Module, neurons: Mapping[int, Iterable[int]]) -> nn.Module:
    """Return a copy of a model without the given feed-forward neurons; see [`prune`]."""
    return prune(model, neurons=neurons)


def _to_saved_form(model: nn.Module) -> nn.Module:
    """Convert a model with sliced linear layers to a class that saves and loads it, in place if possible."""
    encoder, kind = find_encoder(model), pruned_class(model)
    if note_counts(encoder):
        return model
    if kind is type(model):
        # The solver attaches the bottleneck networks to the new encoder by hooks itself.
        detach_bottlenecks(encoder)
        return solver_on(model, _to_saved_form(encoder))
    if kind in STUDENTS.values():
        return kind.from_encoder(model)
    neurons = [parts.num_neurons for parts in layer_parts(model)]
    cut = new_model(kind, model, cut_heads=cut_heads(model), neurons_per_layer=neurons)
    cut.load_state_dict(model.state_dict())
    return cut


def pruned_class(model: nn.Module) -> type[PreTrainedModel]:
    """Return the class of the model that [`prune`] returns for a model. Raises `ValueError` if there is none."""
    encoder = find_encoder(model)
    # Raises an error with advice if the model has adapters.
    layer_parts(model)
    if isinstance(model, PreTrainedModel):
        if isinstance(model, MwpSolver):
            pruned_class(encoder)
            return type(model)
        if encoder.config.model_type == "mwp_student" or encoder.config.model_type.startswith(CUT_PREFIX):
            return type(model)
        for auto_class, stock in stock_models(type(model.config)).items():
            # A subclass of a Transformers model may have further modules, which would be lost.
            if type(model) is stock and encoder.config.model_type not in SOURCES:
                return cut_class(stock)
            if type(model) is stock and auto_class in STUDENTS:
                return STUDENTS[auto_class]
    raise ValueError(
        f"No class can load a pruned {type(model).__name__}. Supported are encoders of Transformers without a head, "
        "...ForSequenceClassification, ...ForMaskedLM and ...ForConditionalGeneration. Prune the encoder instead "
        f"({type(encoder).__name__})."
    )


def new_model(kind: type[PreTrainedModel], like: PreTrainedModel, **fields: Any) -> PreTrainedModel:
    """Create a `kind` with the config, dtype and device of `like`, and these fields of [`CutConfig`]."""
    values = {name: value for name, value in like.config.to_dict().items() if name not in NOT_OF_STOCK_CONFIGS}
    config = kind.config_class.from_dict(values | fields, attn_implementation=like.config._attn_implementation)
    has_no_pooler = getattr(like, "pooler", like) is None
    model = kind(config, **({"add_pooling_layer": False} if has_no_pooler else {}))
    if like.can_generate():
        model.generation_config = copy.deepcopy(like.generation_config)
    return model.to(like.device, like.dtype).train(like.training)


def note_counts(encoder: PreTrainedModel) -> bool:
    """Write the numbers of heads and neurons to the encoder's config. Returns `False` if it lacks the fields."""
    config, found = encoder.config, layer_parts(encoder)
    heads, neurons = [parts.num_heads for parts in found], [parts.num_neurons for parts in found]
    if config.model_type.startswith(CUT_PREFIX):
        config.neurons_per_layer = neurons
        return True
    if config.model_type != "mwp_student":
        return False
    for layer, parts in zip(encoder.encoder.layer, found, strict=True):
        if parts.query is not None and not parts.num_heads:
            layer.attention.self = None
            layer.attention.output.dense = MwpStudentBias(config.hidden_size)
            layer.attention.output.dense.bias = parts.attention_output.bias
        if parts.intermediate is not None and not parts.num_neurons:
            layer.intermediate = None
            layer.output.dense = MwpStudentBias(config.hidden_size)
            layer.output.dense.bias = parts.output.bias
    config.num_attention_heads = heads[0] if len(set(heads)) == 1 else heads
    config.intermediate_size = neurons[0] if len(set(neurons)) == 1 else neurons
    return True


def solver_on(solver: nn.Module, encoder: PreTrainedModel) -> nn.Module:
    """Return the solver on a new encoder with the same width and number of layers."""
    config = copy.deepcopy(solver.config)
    config.encoder_config = encoder.config
    smaller = type(solver)(config, encoder=encoder, decoder=solver.decoder)
    if solver.bottlenecks is not None:
        smaller.bottlenecks.load_state_dict(solver.bottlenecks.state_dict())
    inherit_training_texts(smaller, solver)
    return smaller.to(solver.device, solver.dtype).train(solver.training)

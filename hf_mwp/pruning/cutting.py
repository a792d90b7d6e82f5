"""Smaller models: heads and neurons cut out, in a form that `from_pretrained` loads."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

from torch import nn
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MODEL_MAPPING,
    PreTrainedModel,
)

from ..data.training_lineage import inherit_training_texts
from ..models.architecture import CUT_PREFIX, cut_heads, find_encoder, layer_parts
from ..models.cut_model import CutModel, cut_class, stock_models
from ..models.mwp_solver.bottlenecks import detach_bottlenecks
from ..models.mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForSequenceClassification,
    MwpStudentModel,
)
from ..models.mwp_student.conversion_mwp_student import SOURCES
from ..models.mwp_student.layers_mwp_student import MwpStudentBias
from ..models.slicing import note_cut_heads, slice_heads, slice_neurons
from .gates import HeadGates, NeuronGates, check_indices


# With the classes that each takes the place of, by the class of their config.
STUDENTS = {
    MwpStudentModel: MODEL_MAPPING,
    MwpStudentForSequenceClassification: MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING,
    MwpStudentForMaskedLM: MODEL_FOR_MASKED_LM_MAPPING,
}


NOT_OF_STOCK_CONFIGS = {"model_type", "cut_heads", "neurons_per_layer"}


def prune_heads(model: nn.Module, heads: Mapping[int, Iterable[int]]) -> nn.Module:
    """
    A model without some attention heads.

    Args:
        model (`nn.Module`):
            A model with an encoder that [`~models.architecture.find_encoder`] knows: alone, with a classifier, a head
            for masked words, or a solver. It stays as it is.
        heads (`Mapping[int, Iterable[int]]`):
            By layer, the heads to cut, both from 0; those that gates have closed go as well. All heads of a layer may
            go: the bias of the output projection is left.

    Returns:
        The pruned model, of equal outputs to one whose heads are gated to 0: an `MwpStudent*` of as many heads a layer
        in its config for an encoder like BERT, alone or with a head, a [`~models.cut_model.CutModel`] for one of
        another type; a solver keeps its decoder and bottleneck networks, with such an encoder. It saves with
        `save_pretrained` and loads with `from_pretrained`, with `trust_remote_code=True` where hf_mwp is not imported.

    Raises:
        ValueError: there is no such layer or head, an encoder of an unknown type, one with adapters, or a class
            without such a model: with another head, or derived from one of Transformers.

    Example:

    ```python
    >>> smaller = prune_heads(model, {0: [3, 7], 5: [0]})
    >>> smaller.save_pretrained("pruned")
    ```
    """
    return _cut(model, heads, {})


def prune_neurons(model: nn.Module, neurons: Mapping[int, Iterable[int]]) -> nn.Module:
    """A model without some feed-forward neurons; as [`prune_heads`] in all else."""
    return _cut(model, {}, neurons)


def _cut(model: nn.Module, heads: Mapping[int, Iterable[int]], neurons: Mapping[int, Iterable[int]]) -> nn.Module:
    parts = layer_parts(model)
    check_indices(heads, [each.num_heads for each in parts])
    check_indices(neurons, [each.num_neurons for each in parts])
    heads = {layer: {*heads.get(layer, ()), *closed} for layer, closed in enumerate(HeadGates.closed_on(model))}
    neurons = {layer: {*neurons.get(layer, ()), *closed} for layer, closed in enumerate(NeuronGates.closed_on(model))}
    smaller = copy.deepcopy(model)
    # A copy carries the gates of the original with it.
    remove_gates(smaller)
    for layer, each in enumerate(layer_parts(smaller)):
        if heads[layer]:
            slice_heads(each, [head for head in range(each.num_heads) if head not in heads[layer]])
        if neurons[layer]:
            slice_neurons(each, [neuron for neuron in range(each.num_neurons) if neuron not in neurons[layer]])
    note_cut_heads(smaller, heads)
    return to_saved_form(smaller)


def remove_gates(model: nn.Module) -> None:
    """Takes all gates off a model, such as a copy of a gated one, whose own [`Gates`] know nothing of it."""
    for module in model.modules():
        for kind in (HeadGates, NeuronGates):
            if hasattr(module, kind.buffer):
                delattr(module, kind.buffer)
                delattr(module, kind.record)
                keys = [key for key, hook in module._forward_pre_hooks.items() if hook is kind.multiply]
                for key in keys:
                    del module._forward_pre_hooks[key]


def to_saved_form(model: nn.Module) -> nn.Module:
    """
    A model whose linear layers were sliced ([`slice_heads`]) in a form that saves and loads: a student's config, or
    that of a [`CutModel`], is brought up to date in place, any other encoder becomes one of the two.

    Raises:
        ValueError: as [`prune_heads`].
    """
    encoder, kind = find_encoder(model), pruned_class(model)
    if encoder.config.model_type == "mwp_student":
        update_student(encoder)
        return model
    if encoder.config.model_type.startswith(CUT_PREFIX):
        encoder.config.neurons_per_layer = [parts.num_neurons for parts in layer_parts(encoder)]
        return model
    if kind is type(model):
        # They hang on the layers by hooks of the solver, which puts them onto the new encoder itself.
        detach_bottlenecks(encoder)
        return solver_on(model, to_saved_form(encoder))
    return cut_from(model, kind) if issubclass(kind, CutModel) else kind.from_encoder(model)


def pruned_class(model: nn.Module) -> type[PreTrainedModel]:
    """The class of what [`prune_heads`] makes of a model, which loads it again; `ValueError` if there is none."""
    encoder = find_encoder(model)
    # Of adapters it says what to do.
    layer_parts(model)
    if isinstance(model, PreTrainedModel):
        if model.config.model_type == "mwp_solver":
            pruned_class(encoder)
            return type(model)
        if encoder.config.model_type == "mwp_student" or encoder.config.model_type.startswith(CUT_PREFIX):
            return type(model)
        # A class derived from one of Transformers may have other parts, which would be lost.
        if encoder.config.model_type in SOURCES:
            stock = {student: classes.get(type(model.config), None) for student, classes in STUDENTS.items()}
        else:
            stock = {cut_class(each): each for each in stock_models(type(model.config)).values()}
        for kind, each in stock.items():
            if type(model) is each:
                return kind
    raise ValueError(
        f"A pruned {type(model).__name__} has no class that loads it again: stock encoders alone, "
        "...ForSequenceClassification and ...ForMaskedLM have one. Prune its encoder "
        f"({type(encoder).__name__})."
    )


def cut_from(model: PreTrainedModel, kind: type[PreTrainedModel]) -> PreTrainedModel:
    """Return the [`CutModel`] of this class with the weights of a stock model whose linear layers were sliced."""
    neurons = [parts.num_neurons for parts in layer_parts(model)]
    cut = new_model(kind, model, cut_heads=cut_heads(model), neurons_per_layer=neurons)
    cut.load_state_dict(model.state_dict())
    return cut


def new_model(kind: type[PreTrainedModel], like: PreTrainedModel, **fields: Any) -> PreTrainedModel:
    """Make a model of this class with the config of another, these fields of [`CutConfig`], its dtype and device."""
    values = {name: value for name, value in like.config.to_dict().items() if name not in NOT_OF_STOCK_CONFIGS}
    config = kind.config_class.from_dict(values | fields, attn_implementation=like.config._attn_implementation)
    has_no_pooler = getattr(like, "pooler", like) is None
    model = kind(config, **({"add_pooling_layer": False} if has_no_pooler else {}))
    return model.to(like.device, like.dtype).train(like.training)


def update_student(student: MwpStudentModel) -> None:
    """Writes a sliced student's counts of heads and neurons into its config; sublayers without any keep a bias."""
    heads, neurons = [], []
    for layer, parts in zip(student.encoder.layer, layer_parts(student), strict=True):
        heads.append(parts.num_heads)
        neurons.append(parts.num_neurons)
        if parts.query is not None and not parts.num_heads:
            layer.attention.self = None
            layer.attention.output.dense = _bias_of(parts.attention_output)
        if parts.intermediate is not None and not parts.num_neurons:
            layer.intermediate = None
            layer.output.dense = _bias_of(parts.output)
    student.config.num_attention_heads = heads[0] if len(set(heads)) == 1 else heads
    student.config.intermediate_size = neurons[0] if len(set(neurons)) == 1 else neurons


def _bias_of(linear: nn.Linear) -> MwpStudentBias:
    left = MwpStudentBias(linear.out_features)
    left.bias = linear.bias
    return left


def solver_on(solver: nn.Module, encoder: MwpStudentModel) -> nn.Module:
    """The solver on another encoder of the same width and number of layers."""
    config = copy.deepcopy(solver.config)
    config.encoder_config = encoder.config
    smaller = type(solver)(config, encoder=encoder, decoder=solver.decoder)
    if solver.bottlenecks is not None:
        smaller.bottlenecks.load_state_dict(solver.bottlenecks.state_dict())
    inherit_training_texts(smaller, solver)
    return smaller.to(solver.device, solver.dtype).train(solver.training)


__all__ = [
    "STUDENTS",
    "new_model",
    "prune_heads",
    "prune_neurons",
    "pruned_class",
    "remove_gates",
    "solver_on",
    "to_saved_form",
    "update_student",
]

"""Conversion of pruned models to classes that `from_pretrained` loads without the pruned heads and neurons."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from torch import nn
from transformers import PreTrainedModel

from hf_mwp.utils.provenance import inherit_training_texts

from .architecture import CUT_PREFIX, count_units, cut_heads, find_encoder, layer_parts
from .cut_model import CutConfig, cut_class, slice_position_bias, stock_models
from .mwp_student import (
    MwpStudentForMaskedLM,
    MwpStudentForMultipleChoice,
    MwpStudentForQuestionAnswering,
    MwpStudentForSequenceClassification,
    MwpStudentForTokenClassification,
    MwpStudentModel,
)
from .mwp_student.conversion_mwp_student import SOURCES, common_size
from .mwp_student.layers_mwp_student import MwpStudentBias


# Students by the Auto class that loads the Transformers model which they replace.
STUDENTS = {
    "AutoModel": MwpStudentModel,
    "AutoModelForSequenceClassification": MwpStudentForSequenceClassification,
    "AutoModelForMaskedLM": MwpStudentForMaskedLM,
    "AutoModelForTokenClassification": MwpStudentForTokenClassification,
    "AutoModelForQuestionAnswering": MwpStudentForQuestionAnswering,
    "AutoModelForMultipleChoice": MwpStudentForMultipleChoice,
}
PRUNING_FIELDS = {"model_type", "cut_heads", "neurons_per_layer"}


def pruned_class(model: nn.Module) -> type[PreTrainedModel]:
    """Return the class that can load a model after pruning, which may be its own. Raises `ValueError` if none can."""
    encoder = find_encoder(model)
    # Raises an error with advice if the model has adapters.
    layer_parts(model)
    if is_built_on_encoder(model):
        pruned_class(encoder)
        return type(model)
    if isinstance(model, PreTrainedModel):
        if has_layer_sizes(encoder):
            return type(model)
        for auto_class, stock in stock_models(type(model.config)).items():
            # A subclass of a Transformers model may have further modules, which would be lost.
            if type(model) is not stock:
                continue
            if encoder.config.model_type not in SOURCES:
                return cut_class(stock)
            if auto_class in STUDENTS:
                return STUDENTS[auto_class]
    class_name = type(model).__name__
    raise ValueError(f"No class can load a pruned {class_name}. Prune the encoder instead ({type(encoder).__name__}).")


def to_pruned_class(model: nn.Module) -> nn.Module:
    """Convert a model to its [`pruned_class`], after [`record_pruning`]."""
    model_class = pruned_class(model)
    if has_layer_sizes(find_encoder(model)):
        return model
    if is_built_on_encoder(model):
        return model.convert_encoder(to_pruned_class)
    if model_class in STUDENTS.values():
        student = model_class.from_encoder(model)
        inherit_training_texts(student, model)
        return student
    options = {}
    if getattr(model, "pooler", model) is None:
        options["add_pooling_layer"] = False
    pruned = model_class(cut_config(model), **options)
    if model.can_generate():
        pruned.generation_config = copy.deepcopy(model.generation_config)
    # Leave out modules that a trainer attaches, such as the projections of a distillation.
    names = pruned.state_dict().keys()
    weights = {name: weight for name, weight in model.state_dict().items() if name in names}
    pruned.load_state_dict(weights)
    inherit_training_texts(pruned, model)
    pruned.to(model.device, model.dtype)
    copy_buffers(pruned, model)
    return pruned.train(model.training)


def copy_buffers(model: nn.Module, source: nn.Module) -> None:
    """Copy the buffers of a source that are not saved, such as rotary frequencies, which keep their precision in
    models of half precision."""
    buffers = dict(source.named_buffers())
    saved_names = model.state_dict().keys()
    for name, buffer in model.named_buffers():
        if name not in saved_names:
            buffer.data = buffers[name].clone()


def cut_config(model: PreTrainedModel) -> CutConfig:
    """Return the config of a model of Transformers with the heads and neurons that it has after [`record_pruning`]."""
    values = {name: value for name, value in model.config.to_dict().items() if name not in PRUNING_FIELDS}
    values["cut_heads"] = cut_heads(model)
    _, values["neurons_per_layer"] = count_units(model)
    config_class = cut_class(type(model.config))
    return config_class.from_dict(values, attn_implementation=model.config._attn_implementation)


@contextmanager
def loadable_config(model: nn.Module) -> Iterator[None]:
    """Context manager for saving a model whose heads were removed in memory ([`record_pruning`]) with its own weight
    names, as checkpoints need them. Inside, it has the class and config with which `from_pretrained` loads them."""
    encoder = find_encoder(model)
    if has_layer_sizes(encoder) or not any(cut_heads(model)):
        yield
        return
    if is_built_on_encoder(model):
        encoder_config = model.config.encoder_config
        model.config.encoder_config = cut_config(encoder)
        try:
            yield
        finally:
            model.config.encoder_config = encoder_config
        return
    stock = type(model)
    config = model.config
    model.config = cut_config(model)
    model.__class__ = cut_class(stock)
    try:
        yield
    finally:
        model.__class__ = stock
        model.config = config


def is_built_on_encoder(model: nn.Module) -> bool:
    """Return whether a model, such as a solver, consists of an encoder and further modules. Such a model has a method
    `convert_encoder`, and its config a field `encoder_config`."""
    # Wrappers pass on attributes of the model, so look at the class.
    return hasattr(type(model), "convert_encoder")


def convert_encoder(model: nn.Module, convert: Callable[[nn.Module], PreTrainedModel]) -> nn.Module:
    """Return a model on its converted encoder, which keeps its width and layers, or an encoder or model with a head
    converted."""
    if is_built_on_encoder(model):
        return model.convert_encoder(convert)
    return convert(model)


def has_layer_sizes(encoder: PreTrainedModel) -> bool:
    """Return whether an encoder's config can store different numbers of heads and neurons for each layer."""
    return encoder.config.model_type == "mwp_student" or encoder.config.model_type.startswith(CUT_PREFIX)


def record_pruning(model: nn.Module, cut: Mapping[int, Iterable[int]]) -> None:
    """Update the config of an encoder after removing heads and neurons: the original indices of all pruned heads and,
    if the config has these fields, the numbers of remaining heads and neurons. `cut` maps layers to the heads just
    removed, by their indices before the removal."""
    encoder = find_encoder(model)
    config = encoder.config
    layers = layer_parts(model)
    pruned = cut_heads(model)
    for layer, linears in enumerate(layers):
        removed = list(cut.get(layer, ()))
        num_heads = linears.num_heads + len(removed) + len(pruned[layer])
        # Original indices of the heads that were left before this removal.
        original = [head for head in range(num_heads) if head not in pruned[layer]]
        pruned[layer] += [original[head] for head in removed]
        pruned[layer].sort()
    config.cut_heads = pruned if any(pruned) else None
    slice_position_bias(model)
    heads, neurons = count_units(model)
    if config.model_type.startswith(CUT_PREFIX):
        config.neurons_per_layer = neurons
    elif has_layer_sizes(encoder):
        for layer, linears in zip(encoder.encoder.layer, layers, strict=True):
            if linears.query is not None and not linears.num_heads:
                layer.attention.self = None
                layer.attention.output.dense = MwpStudentBias(config.hidden_size)
                layer.attention.output.dense.bias = linears.attention_output.bias
            if linears.intermediate is not None and not linears.num_neurons:
                layer.intermediate = None
                layer.output.dense = MwpStudentBias(config.hidden_size)
                layer.output.dense.bias = linears.output.bias
        config.num_attention_heads = common_size(heads)
        config.intermediate_size = common_size(neurons)

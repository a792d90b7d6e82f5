"""Classes of pruned models, which `save_pretrained` and `from_pretrained` support, and conversion to these classes."""

import copy
from collections.abc import Callable, Iterable, Mapping

from torch import nn
from transformers import PreTrainedModel

from ..data.training_lineage import inherit_training_texts
from .architecture import CUT_PREFIX, cut_heads, find_encoder, layer_parts
from .cut_model import cut_class, share_bias, stock_models
from .mwp_solver import MwpSolver
from .mwp_solver.bottlenecks import detach_bottlenecks
from .mwp_student import MwpStudentForMaskedLM, MwpStudentForSequenceClassification, MwpStudentModel
from .mwp_student.conversion_mwp_student import SOURCES
from .mwp_student.layers_mwp_student import MwpStudentBias


# Students by the Auto class that loads the Transformers model which they replace.
STUDENTS = {
    "AutoModel": MwpStudentModel,
    "AutoModelForSequenceClassification": MwpStudentForSequenceClassification,
    "AutoModelForMaskedLM": MwpStudentForMaskedLM,
}
NOT_OF_STOCK_CONFIGS = {"model_type", "cut_heads", "neurons_per_layer"}


def pruned_class(model: nn.Module) -> type[PreTrainedModel]:
    """Return the class of the model that [`prune`] returns for a model. Raises `ValueError` if there is none."""
    encoder = find_encoder(model)
    # Raises an error with advice if the model has adapters.
    layer_parts(model)
    if isinstance(model, MwpSolver):
        pruned_class(encoder)
        return type(model)
    if isinstance(model, PreTrainedModel):
        if has_counts(encoder):
            return type(model)
        for auto_class, stock in stock_models(type(model.config)).items():
            # A subclass of a Transformers model may have further modules, which would be lost.
            if type(model) is stock and encoder.config.model_type not in SOURCES:
                return cut_class(stock)
            if type(model) is stock and auto_class in STUDENTS:
                return STUDENTS[auto_class]
    own, inner = type(model).__name__, type(encoder).__name__
    raise ValueError(f"No class can load a pruned {own}. Prune the encoder instead ({inner}).")


def to_saved_form(model: nn.Module) -> nn.Module:
    """Convert a model after [`note_pruned`] to its [`pruned_class`], which may be the model's own."""
    encoder, kind = find_encoder(model), pruned_class(model)
    if has_counts(encoder):
        return model
    if isinstance(model, MwpSolver):
        return convert_encoder(model, to_saved_form)
    if kind in STUDENTS.values():
        return kind.from_encoder(model)
    values = {name: value for name, value in model.config.to_dict().items() if name not in NOT_OF_STOCK_CONFIGS}
    values |= {"cut_heads": cut_heads(model), "neurons_per_layer": [parts.num_neurons for parts in layer_parts(model)]}
    config = kind.config_class.from_dict(values, attn_implementation=model.config._attn_implementation)
    has_no_pooler = getattr(model, "pooler", model) is None
    cut = kind(config, **({"add_pooling_layer": False} if has_no_pooler else {}))
    if model.can_generate():
        cut.generation_config = copy.deepcopy(model.generation_config)
    # Leave out modules that a trainer attaches, such as the projections of a distillation.
    own = cut.state_dict()
    cut.load_state_dict({name: value for name, value in model.state_dict().items() if name in own})
    return cut.to(model.device, model.dtype).train(model.training)


def convert_encoder(model: nn.Module, convert: Callable[[nn.Module], PreTrainedModel]) -> nn.Module:
    """Return a solver on its converted encoder, which keeps its width and layers, or a different model converted."""
    if not isinstance(model, MwpSolver):
        return convert(model)
    # The solver attaches the bottleneck networks to the new encoder by hooks itself.
    detach_bottlenecks(model.encoder)
    encoder, config = convert(model.encoder), copy.deepcopy(model.config)
    config.encoder_config = encoder.config
    solver = type(model)(config, encoder=encoder, decoder=model.decoder)
    if model.bottlenecks is not None:
        solver.bottlenecks.load_state_dict(model.bottlenecks.state_dict())
    inherit_training_texts(solver, model)
    return solver.to(model.device, model.dtype).train(model.training)


def has_counts(encoder: PreTrainedModel) -> bool:
    """Return whether an encoder's config has the numbers of heads and neurons of each layer."""
    return encoder.config.model_type == "mwp_student" or encoder.config.model_type.startswith(CUT_PREFIX)


def note_pruned(model: nn.Module, cut: Mapping[int, Iterable[int]]) -> None:
    """Write what was removed from an encoder to its config: the heads in `cut`, by layer and their indices before, and
    the numbers of remaining heads and neurons if it has these fields."""
    encoder, noted, found = find_encoder(model), cut_heads(model), layer_parts(model)
    config = encoder.config
    for layer, parts in enumerate(found):
        gone = list(cut.get(layer, ()))
        total = parts.num_heads + len(gone) + len(noted[layer])
        # Original indices of the heads that were left before this removal.
        labels = [head for head in range(total) if head not in noted[layer]]
        noted[layer] = sorted([*noted[layer], *(labels[head] for head in gone)])
    config.cut_heads = noted if any(noted) else None
    share_bias(model)
    heads, neurons = [parts.num_heads for parts in found], [parts.num_neurons for parts in found]
    if config.model_type.startswith(CUT_PREFIX):
        config.neurons_per_layer = neurons
    elif has_counts(encoder):
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

"""A pruned model as a model of Transformers: the same outputs, zeros where something was cut."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, PreTrainedConfig, PreTrainedModel

from ..models.architecture import CUT_PREFIX, LayerParts, cut_heads, find_encoder, layer_parts
from ..models.cut_model import stock_class, stock_models
from ..models.mwp_solver import MwpSolver
from ..models.mwp_student.conversion_mwp_student import CLASSIFIER_ACTIVATIONS, COPIED, RENAMED
from .cutting import STUDENTS, new_model, prune, solver_on


# By the type of the stock models that a student can become, beginnings of names in their heads that are not BERT's.
HEADS = {"bert": (), "roberta": ("lm_head.", "classifier."), "electra": ("generator_", "classifier.")}
HEAD_PARTS = ("query", "key", "value", "query_key_value", "position_key", "position_query", "attention_output")
NEURON_PARTS = ("intermediate", "gate", "output")


def export_dense(model: nn.Module) -> PreTrainedModel:
    """
    Convert a student, pruned or not, to a stock model: a BERT, a RoBERTa if it counts positions like one, or an
    ELECTRA if it projects its embeddings. A pruned encoder of another type becomes a stock model of that type.

    Each layer has as many heads as fit into the width, and as many neurons as the widest layer; heads and neurons that
    the source does not have are zeros. The result is no faster than the source: it is for tools that know stock models
    alone.

    Args:
        model (`nn.Module`):
            An `MwpStudentModel`, `...ForMaskedLM`, `...ForSequenceClassification`, what [`prune`] makes of an
            encoder of another type, or a solver on such an encoder, of which the encoder is replaced. It stays as it
            is.

    Returns:
        A model of equal outputs, with the dtype, device and mode of the source. A pooler that the stock model does not
        have, or has with another activation, is left out.

    Raises:
        ValueError: another model, heads that do not fit into the width of the encoder, or positions, projected
            embeddings or activations that no stock model has.
    """
    kind = find_encoder(model).config.model_type
    if kind != "mwp_student" and not kind.startswith(CUT_PREFIX):
        raise ValueError(f"{type(model).__name__} is dense already: nothing was cut from it.")
    # A copy, without what gates have closed.
    model = prune(model)
    make = _uncut if kind.startswith(CUT_PREFIX) else _dense
    if isinstance(model, MwpSolver):
        return solver_on(model, make(find_encoder(model)))
    return make(model)


@torch.no_grad()
def _uncut(cut: PreTrainedModel) -> PreTrainedModel:
    """Return the stock model of a [`CutModel`]: heads have their former places, neurons that are left come first."""
    stock = new_model(stock_class(type(cut)), cut)
    shapes = {name: value.shape for name, value in stock.state_dict().items()}
    same = {name: value for name, value in cut.state_dict().items() if shapes[name] == value.shape}
    stock.load_state_dict(same, strict=False)
    for whole, left, gone in zip(layer_parts(stock), layer_parts(cut), cut_heads(cut), strict=True):
        heads = [head for head in range(whole.num_heads) if head not in gone]
        _spread(whole, left, HEAD_PARTS, heads, whole.num_heads, whole.head_dim)
        _spread(whole, left, NEURON_PARTS, range(left.num_neurons), whole.num_neurons, 1)
    return stock


def _spread(
    whole: LayerParts, left: LayerParts, parts: Sequence[str], kept: Sequence[int], count: int, width: int
) -> None:
    """
    Fill the linear layers of heads or of neurons: what is left stands at the places `kept` of `count`, each so many
    rows wide, the rest is zeros. The last part reads the others and has columns in place of rows.
    """
    for part in parts:
        linear, source, dim = getattr(whole, part), getattr(left, part), int(part == parts[-1])
        if linear is None:
            continue
        # A fused layer has all queries, then all keys, then all values.
        places = torch.arange(linear.weight.shape[dim], device=linear.weight.device).view(-1, count, width)
        places = places[:, list(kept)].flatten()
        for name in ("weight",) if dim or linear.bias is None else ("weight", "bias"):
            parameter = getattr(linear, name)
            parameter.zero_()
            if source is not None:
                parameter.index_copy_(dim, places, getattr(source, name))
    if linear is not None and linear.bias is not None:
        linear.bias.copy_(left.bias_of(parts[-1]))


def _dense(model: nn.Module) -> PreTrainedModel:
    """Return the stock model of a student."""
    encoder = find_encoder(model)
    config, kind = encoder.config, type(model).__name__
    # By name: a folder's own code (`trust_remote_code`) has classes of it.
    names = {student.__name__: auto_class for auto_class, student in STUDENTS.items()}
    if kind not in names:
        raise ValueError(f"A {kind} has no stock form, as {', '.join(names)} have: export its encoder.")
    family = _family(config)
    activation = CLASSIFIER_ACTIVATIONS.get(family, "tanh")
    pools = config.classifier_activation == activation
    if names[kind] == "AutoModelForSequenceClassification" and not pools:
        raise ValueError(
            f"The classifier's activation is {config.classifier_activation}, that of {family} is {activation}: "
            "export the encoder (`model.mwp_student`) and train a classifier on it."
        )
    if (family, names[kind]) == ("electra", "AutoModelForMaskedLM") and config.hidden_act != "gelu":
        raise ValueError(
            f"The head for masked words has hidden_act={config.hidden_act!r}, that of {family} gelu: export the "
            "encoder (`model.mwp_student`)."
        )
    if config.hidden_size % config.head_dim or config.hidden_size < config.head_dim * max(config.heads_per_layer):
        raise ValueError(
            f"{max(config.heads_per_layer)} heads of width {config.head_dim} do not fit into an encoder of width "
            f"{config.hidden_size}, which those of {family} fill."
        )
    dense_config = _dense_config(config, CONFIG_MAPPING[family])
    has_choice = model is encoder and family != "electra"
    options = {"add_pooling_layer": pools and encoder.pooler is not None} if has_choice else {}
    dense = stock_models(type(dense_config))[names[kind]](dense_config, **options).to(model.device, model.dtype)
    renamed = {new: old for old, new in RENAMED.items() if old.startswith(HEADS[family])}
    states = {}
    for name, value in model.state_dict().items():
        start = next((start for start in renamed if name.startswith(start)), "")
        name = renamed.get(start, "") + name.removeprefix(start)
        states[name.replace("mwp_student.", f"{dense.base_model_prefix}.", 1)] = value
    # BERT and RoBERTa keep the output bias of masked words beside the layer, too.
    for place in ("cls.predictions.", "lm_head."):
        if f"{place}decoder.bias" in states:
            states[f"{place}bias"] = states[f"{place}decoder.bias"]
    dense.load_state_dict({name: _padded(states.get(name), value) for name, value in dense.state_dict().items()})
    return dense.train(model.training)


def _family(config: Any) -> str:
    """Return the type of stock models whose embeddings and positions are those of a student."""
    if config.embedding_size is not None:
        if config.embedding_size == config.hidden_size or config.position_offset:
            raise ValueError(
                f"embedding_size={config.embedding_size} with hidden_size={config.hidden_size} and position_offset="
                f"{config.position_offset}: of stock models ELECTRA projects its embeddings, from another width and "
                "with positions from 0."
            )
        return "electra"
    if config.position_offset and config.position_offset != config.pad_token_id + 1:
        raise ValueError(
            f"Positions begin at {config.position_offset} (`position_offset`), RoBERTa's at `pad_token_id` + 1, which "
            f"is {config.pad_token_id + 1}: no stock model counts so."
        )
    return "roberta" if config.position_offset else "bert"


def _dense_config(config: Any, config_class: type[PreTrainedConfig]) -> PreTrainedConfig:
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings", "type_vocab_size")
    names += ("id2label", "label2id", "problem_type")
    if config.embedding_size is not None:
        names += ("embedding_size",)
    return config_class(
        **{name: getattr(config, name) for name in (*COPIED, *names)},
        num_attention_heads=config.hidden_size // config.head_dim,
        intermediate_size=max(1, *config.neurons_per_layer),
        attn_implementation=config._attn_implementation,
    )


def _padded(value: Tensor | None, like: Tensor) -> Tensor:
    """Return the value in the corner of zeros of another's shape; zeros alone if there is none."""
    padded = torch.zeros_like(like)
    if value is not None:
        padded[tuple(slice(size) for size in value.shape)] = value
    return padded

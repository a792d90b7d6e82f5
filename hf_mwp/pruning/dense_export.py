"""A pruned student as a model of Transformers: the same outputs, zeros where something was cut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForSequenceClassification,
    ElectraModel,
    PreTrainedConfig,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    RobertaModel,
)

from ..models.architecture import CUT_PREFIX, find_encoder
from ..models.mwp_student.conversion_mwp_student import COPIED, RENAMED
from .cutting import prune_heads, solver_on
from .stock_form import stock_form


# The classes of students that have a stock form, by name: a folder's own code (`trust_remote_code`) has classes of it.
KINDS = ("MwpStudentModel", "MwpStudentForSequenceClassification", "MwpStudentForMaskedLM")


@dataclass(frozen=True)
class Stock:
    """
    A family of stock models that students can become.

    Args:
        config_class (`type`): Class of their configs.
        classes (`tuple[type, ...]`): Class of each of [`KINDS`].
        renamed (`tuple[str, ...]`): Beginnings of the names of their heads, where these are not BERT's.
        activation (`str`): Activation of their pooler or classifier.
        has_pooler (`bool`): Whether their encoder may have a pooler of its own.
    """

    config_class: type[PreTrainedConfig]
    classes: tuple[type[PreTrainedModel], ...]
    renamed: tuple[str, ...] = ()
    activation: str = "tanh"
    has_pooler: bool = True


BERT = Stock(BertConfig, (BertModel, BertForSequenceClassification, BertForMaskedLM))
ROBERTA = Stock(
    RobertaConfig,
    (RobertaModel, RobertaForSequenceClassification, RobertaForMaskedLM),
    ("lm_head.", "classifier."),
)
ELECTRA = Stock(
    ElectraConfig,
    (ElectraModel, ElectraForSequenceClassification, ElectraForMaskedLM),
    ("generator_", "classifier."),
    activation="gelu",
    has_pooler=False,
)


def export_dense(model: nn.Module) -> PreTrainedModel:
    """
    Convert a student, pruned or not, to a stock model: a BERT, a RoBERTa if it counts positions like one, or an
    ELECTRA if it projects its embeddings. A pruned encoder of another type becomes a stock model of that type.

    Each layer has as many heads as fit into the width, and as many neurons as the widest layer; heads and neurons that
    the source does not have are zeros. The result is no faster than the source: it is for tools that know stock models
    alone.

    Args:
        model (`nn.Module`):
            An `MwpStudentModel`, `...ForMaskedLM`, `...ForSequenceClassification`, what [`prune_heads`] makes of an
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
    model = prune_heads(model, {})
    make = stock_form if kind.startswith(CUT_PREFIX) else _dense
    if getattr(model.config, "model_type", None) == "mwp_solver":
        return solver_on(model, make(find_encoder(model)))
    return make(model)


def _dense(model: nn.Module) -> PreTrainedModel:
    encoder = find_encoder(model)
    config, kind = encoder.config, type(model).__name__
    if kind not in KINDS:
        raise ValueError(f"A {kind} has no stock form, as {', '.join(KINDS)} have: export its encoder.")
    stock = _stock_of(config)
    dense_class, has_activation = stock.classes[KINDS.index(kind)], config.classifier_activation == stock.activation
    family = stock.config_class.model_type
    if kind == "MwpStudentForSequenceClassification" and not has_activation:
        raise ValueError(
            f"The classifier's activation is {config.classifier_activation}, that of {family} is {stock.activation}: "
            "export the encoder (`model.mwp_student`) and train a classifier on it."
        )
    if dense_class is ElectraForMaskedLM and config.hidden_act != "gelu":
        raise ValueError(
            f"The head for masked words has hidden_act={config.hidden_act!r}, that of {family} gelu: export the "
            "encoder (`model.mwp_student`)."
        )
    if config.hidden_size % config.head_dim or config.hidden_size < config.head_dim * max(config.heads_per_layer):
        raise ValueError(
            f"{max(config.heads_per_layer)} heads of width {config.head_dim} do not fit into an encoder of width "
            f"{config.hidden_size}, which those of {family} fill."
        )
    pools = has_activation and encoder.pooler is not None
    options = {"add_pooling_layer": pools} if model is encoder and stock.has_pooler else {}
    dense = dense_class(_dense_config(config, stock), **options).to(model.device, model.dtype)
    renamed = {new: old for old, new in RENAMED.items() if old.startswith(stock.renamed)}
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


def _stock_of(config: Any) -> Stock:
    """Return the stock models whose embeddings and positions are those of a student."""
    if config.embedding_size is not None:
        if config.embedding_size == config.hidden_size or config.position_offset:
            raise ValueError(
                f"embedding_size={config.embedding_size} with hidden_size={config.hidden_size} and position_offset="
                f"{config.position_offset}: of stock models ELECTRA projects its embeddings, from another width and "
                "with positions from 0."
            )
        return ELECTRA
    if not config.position_offset:
        return BERT
    if config.position_offset != config.pad_token_id + 1:
        raise ValueError(
            f"Positions begin at {config.position_offset} (`position_offset`), RoBERTa's at `pad_token_id` + 1, which "
            f"is {config.pad_token_id + 1}: no stock model counts so."
        )
    return ROBERTA


def _dense_config(config: Any, stock: Stock) -> PreTrainedConfig:
    fields = {name: getattr(config, name) for name in COPIED}
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings", "type_vocab_size")
    fields |= {name: getattr(config, name) for name in names}
    fields |= {
        "num_attention_heads": config.hidden_size // config.head_dim,
        "intermediate_size": max(1, *config.neurons_per_layer),
        "id2label": config.id2label,
        "label2id": config.label2id,
        "problem_type": config.problem_type,
        "attn_implementation": config._attn_implementation,
    }
    if config.embedding_size is not None:
        fields["embedding_size"] = config.embedding_size
    return stock.config_class(**fields)


def _padded(value: Tensor | None, like: Tensor) -> Tensor:
    """The value in the corner of zeros of another's shape; zeros alone if there is none."""
    padded = torch.zeros_like(like)
    if value is not None:
        padded[tuple(slice(size) for size in value.shape)] = value
    return padded


__all__ = ["export_dense"]

"""A pruned student as a model of Transformers: the same outputs, zeros where something was cut."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
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


# What a student becomes, by the name of its class: a folder's own code (`trust_remote_code`) has classes of the name.
DENSE = {
    "MwpStudentModel": (BertModel, RobertaModel),
    "MwpStudentForSequenceClassification": (BertForSequenceClassification, RobertaForSequenceClassification),
    "MwpStudentForMaskedLM": (BertForMaskedLM, RobertaForMaskedLM),
}


def export_dense(model: nn.Module) -> PreTrainedModel:
    """
    A student, pruned or not, as a stock BERT, or as a RoBERTa if it counts positions like one, for tools that know
    these alone. Each layer has as many heads as fit into the width, and as many neurons as the widest one; heads and
    neurons that the student does not have are zeros. Nothing is gained in speed. A pruned encoder of another type
    becomes a stock model of that type.

    Args:
        model (`nn.Module`):
            An `MwpStudentModel`, `...ForMaskedLM`, `...ForSequenceClassification`, what [`prune_heads`] makes of an
            encoder of another type, or a solver on such an encoder, of which the encoder is replaced. It stays as it
            is.

    Returns:
        A model of equal outputs, with the dtype, device and mode of the source. A pooler with another activation than
        that of BERT and RoBERTa is left out.

    Raises:
        ValueError: another model, heads that do not fit into the width of the encoder, positions that are counted
            neither as BERT's nor as RoBERTa's, or a classifier whose activation is not theirs.
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
    if kind not in DENSE:
        raise ValueError(f"A {kind} has no stock form, as {', '.join(DENSE)} have: export its encoder.")
    has_tanh = config.classifier_activation == "tanh"
    if kind == "MwpStudentForSequenceClassification" and not has_tanh:
        raise ValueError(
            f"The classifier's activation is {config.classifier_activation}, BERT's is tanh: export the encoder "
            "(`model.mwp_student`) and train a classifier on it."
        )
    if config.hidden_size % config.head_dim or config.hidden_size < config.head_dim * max(config.heads_per_layer):
        raise ValueError(
            f"{max(config.heads_per_layer)} heads of width {config.head_dim} do not fit into an encoder of width "
            f"{config.hidden_size}, which BERT's fill."
        )
    counts_as_roberta = config.position_offset > 0
    if counts_as_roberta and config.position_offset != config.pad_token_id + 1:
        raise ValueError(
            f"Positions begin at {config.position_offset} (`position_offset`), RoBERTa's at `pad_token_id` + 1, which "
            f"is {config.pad_token_id + 1}: no stock model counts so."
        )
    dense_class = DENSE[kind][counts_as_roberta]
    options = {"add_pooling_layer": encoder.pooler is not None and has_tanh} if model is encoder else {}
    dense = dense_class(_dense_config(config), **options).to(model.device, model.dtype)
    renamed = {new: old for old, new in RENAMED.items() if old.startswith(("lm_head.", "classifier."))}
    states = {}
    for name, value in model.state_dict().items():
        if counts_as_roberta:
            start = next((start for start in renamed if name.startswith(start)), "")
            name = renamed.get(start, "") + name.removeprefix(start)
        states[name.replace("mwp_student.", f"{dense.base_model_prefix}.", 1)] = value
    # BERT and RoBERTa keep the output bias of masked words beside the layer, too.
    for place in ("cls.predictions.", "lm_head."):
        if f"{place}decoder.bias" in states:
            states[f"{place}bias"] = states[f"{place}decoder.bias"]
    dense.load_state_dict({name: _padded(states.get(name), value) for name, value in dense.state_dict().items()})
    return dense.train(model.training)


def _dense_config(config: Any) -> BertConfig | RobertaConfig:
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
    return RobertaConfig(**fields) if config.position_offset else BertConfig(**fields)


def _padded(value: Tensor | None, like: Tensor) -> Tensor:
    """The value in the corner of zeros of another's shape; zeros alone if there is none."""
    padded = torch.zeros_like(like)
    if value is not None:
        padded[tuple(slice(size) for size in value.shape)] = value
    return padded


__all__ = ["export_dense"]

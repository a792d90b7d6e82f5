"""A pruned student as a model of Transformers: the same outputs, zeros where something was cut."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from transformers import CONFIG_MAPPING, PreTrainedModel

from ..models.architecture import find_encoder
from ..models.cut_model import stock_models
from ..models.mwp_solver import MwpSolver
from ..models.mwp_student.conversion_mwp_student import CLASSIFIER_ACTIVATIONS, COPIED, RENAMED
from ..options.checks import refuse
from .cutting import STUDENTS, prune, solver_on


# By the type of the stock models that a student can become, beginnings of names in their heads that are not BERT's.
HEADS = {"bert": (), "roberta": ("lm_head.", "classifier."), "electra": ("generator_", "classifier.")}
SAME_NAMES = (
    *("vocab_size", "hidden_size", "num_hidden_layers", "max_position_embeddings", "type_vocab_size"),
    *("id2label", "label2id", "problem_type"),
)


def export_dense(model: nn.Module) -> PreTrainedModel:
    """
    Convert a student, pruned or not, to a stock model: a BERT, a RoBERTa if it counts positions like one, or an
    ELECTRA if it projects its embeddings.

    Each layer has as many heads as fit into the width, and as many neurons as the widest layer; heads and neurons that
    the source does not have are zeros. The result is no faster than the source: it is for tools that know stock models
    alone.

    Args:
        model (`nn.Module`):
            An `MwpStudentModel`, `...ForMaskedLM`, `...ForSequenceClassification`, or a solver on a student, of which
            the encoder is replaced. It stays as it is.

    Returns:
        A model of equal outputs, with the dtype, device and mode of the source. A pooler that the stock model does not
        have, or has with another activation, is left out.

    Raises:
        ValueError: another model, heads that do not fit into the width of the encoder, or positions, projected
            embeddings or activations that no stock model has.
    """
    if find_encoder(model).config.model_type != "mwp_student":
        raise ValueError(f"{type(model).__name__} is no student: only students have a stock form of equal outputs.")
    # A copy, without what gates have closed.
    model = prune(model)
    if isinstance(model, MwpSolver):
        return solver_on(model, _dense(find_encoder(model)))
    return _dense(model)


def _dense(model: nn.Module) -> PreTrainedModel:
    """Return the stock model of a student."""
    encoder = find_encoder(model)
    config = encoder.config
    family = "electra" if config.embedding_size is not None else "roberta" if config.position_offset else "bert"
    activation = CLASSIFIER_ACTIVATIONS.get(family, "tanh")
    # By name: a folder's own code (`trust_remote_code`) has classes of it.
    auto_class = {student.__name__: name for name, student in STUDENTS.items()}.get(type(model).__name__)
    _check(type(model).__name__, config, family, auto_class, activation)
    fields = {name: getattr(config, name) for name in (*COPIED, *SAME_NAMES)}
    if family == "electra":
        fields["embedding_size"] = config.embedding_size
    dense_config = CONFIG_MAPPING[family](
        **fields,
        num_attention_heads=config.hidden_size // config.head_dim,
        intermediate_size=max(1, *config.neurons_per_layer),
        attn_implementation=config._attn_implementation,
    )
    pools = config.classifier_activation == activation and encoder.pooler is not None
    options = {"add_pooling_layer": pools} if model is encoder and family != "electra" else {}
    dense = stock_models(type(dense_config))[auto_class](dense_config, **options).to(model.device, model.dtype)
    # The student's weights under the names of the stock model.
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


def _check(kind: str, config: Any, family: str, auto_class: str | None, activation: str) -> None:
    """Raise `ValueError` for a student that no model of the family has the outputs of."""
    classifies, predicts_words = (
        auto_class == "AutoModelForSequenceClassification",
        auto_class == "AutoModelForMaskedLM",
    )
    offset, heads, width = config.position_offset, config.heads_per_layer, config.embedding_size
    first = config.pad_token_id + 1 if family == "roberta" else 0
    names = ", ".join(each.__name__ for each in STUDENTS.values())
    faults = {
        f"a {kind} is none of {names}": auto_class is None,
        f"embedding_size={width} is projected, though it is that of the encoder": width == config.hidden_size,
        f"position_offset={offset}: with pad_token_id={config.pad_token_id}, {family} has {first}": offset != first,
        f"the classifier's activation is {config.classifier_activation}, that of {family} {activation}": (
            classifies and config.classifier_activation != activation
        ),
        f"the head for masked words has hidden_act={config.hidden_act!r}, that of {family} gelu": (
            family == "electra" and predicts_words and config.hidden_act != "gelu"
        ),
        f"{max(heads)} heads of width {config.head_dim} do not fill an encoder of width {config.hidden_size}": (
            config.hidden_size % config.head_dim or config.hidden_size < config.head_dim * max(heads)
        ),
    }
    refuse({f"No stock model has the outputs of this student: {each}.": fault for each, fault in faults.items()})


def _padded(value: Tensor | None, like: Tensor) -> Tensor:
    """Return the value in the corner of zeros of another's shape; zeros alone if there is none."""
    padded = torch.zeros_like(like)
    if value is not None:
        padded[tuple(slice(size) for size in value.shape)] = value
    return padded

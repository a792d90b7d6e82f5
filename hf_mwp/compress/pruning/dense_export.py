"""Export of students to Transformers models with the same outputs, with zeros for pruned heads and neurons."""

from typing import Any

import torch
from torch import nn
from transformers import CONFIG_MAPPING, PreTrainedModel

from hf_mwp.compress.models.architecture import find_architecture, find_encoder
from hf_mwp.compress.models.cut_model import stock_models
from hf_mwp.compress.models.mwp_student.conversion_mwp_student import (
    CLASSIFIER_ACTIVATIONS,
    COPIED,
    RENAMED,
    replace_prefix,
)
from hf_mwp.compress.models.pruned_form import STUDENTS, convert_encoder
from hf_mwp.utils.checked_types import checked

from .cutting import prune
from .stock_export import stock_model


# Prefixes of the weights of heads that BERT does not have, by target model type and Auto class.
HEADS = {
    "bert": {},
    "roberta": {"AutoModelForMaskedLM": ("lm_head.",), "AutoModelForSequenceClassification": ("classifier.",)},
    "electra": {
        "AutoModelForMaskedLM": ("generator_",),
        "AutoModelForSequenceClassification": ("classifier.",),
        "AutoModelForMultipleChoice": ("sequence_summary.",),
    },
}
# Heads that read the pooled first token.
POOLED = ("AutoModelForSequenceClassification", "AutoModelForMultipleChoice")
LABELS = ("id2label", "label2id")
SAME_NAMES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "max_position_embeddings",
    "type_vocab_size",
    "layer_norm_eps",
    "problem_type",
)


@checked
def export_dense(model: nn.Module) -> PreTrainedModel:
    """
    Convert a model, pruned or not, to a class of Transformers that loads without hf_mwp.

    A student becomes a BERT, a RoBERTa if it counts positions like one, or an ELECTRA if it projects its embeddings.
    Each layer gets as many heads as fit into the width, and as many neurons as the widest layer. Missing heads and
    neurons are filled with zeros, so the result is not faster than the source. It is meant for tools that support only
    classes of Transformers.

    A causal language model that lost equally many heads and neurons in each layer (`uniform=True`) becomes a model of
    its own class with smaller sizes in its config, as tools such as vLLM and llama.cpp read it. Heads are filled with
    zeros only where a config cannot state their number, as those of GPT-2 and GPT-NeoX
    ([`~stock_export.stock_model`]).

    Args:
        model (`nn.Module`): An `MwpStudentModel` or student with a head (`...ForMaskedLM`,
            `...ForSequenceClassification`, `...ForTokenClassification`, `...ForQuestionAnswering`,
            `...ForMultipleChoice`), or a solver with a student as encoder, which is replaced. Or a causal language
            model of a supported type, or a classifier of such a type. The model itself is not changed.

    Returns:
        A model with the same outputs, dtype, device and mode. The pooler is left out if the target class has none, or
        has a different activation.

    Raises:
        ValueError: the model is neither a student nor a causal language model. A student's heads do not fit into the
            width of the encoder, or no class of Transformers has its positions, projected embeddings or activations.
            Layers of a causal language model have different sizes.
    """
    config = find_encoder(model).config
    if find_architecture(config).is_causal:
        export = stock_model
    elif config.model_type == "mwp_student":
        export = _dense
    else:
        raise ValueError(
            f"{type(model).__name__} is neither a student nor a causal language model. Only these can be exported to "
            "Transformers."
        )
    # A copy without heads and neurons closed by gates.
    return convert_encoder(prune(model), export)


def _dense(model: nn.Module) -> PreTrainedModel:
    """Return the Transformers model for a student."""
    encoder = find_encoder(model)
    config = encoder.config
    if config.embedding_size is not None:
        family = "electra"
    elif config.position_offset:
        family = "roberta"
    else:
        family = "bert"
    activation = CLASSIFIER_ACTIVATIONS.get(family, "tanh")
    # Compare names, because models loaded with `trust_remote_code` have their own copies of the classes.
    class_name = type(model).__name__
    auto_classes = {student.__name__: name for name, student in STUDENTS.items()}
    auto_class = auto_classes.get(class_name)
    _check(class_name, config, family, auto_class, activation)
    names = COPIED + SAME_NAMES
    if auto_class != "AutoModelForQuestionAnswering":
        # Transformers counts first and last token of an answer as two labels, the default.
        names += LABELS
    fields = {name: getattr(config, name) for name in names}
    if family == "electra":
        fields["embedding_size"] = config.embedding_size
    dense_config = CONFIG_MAPPING[family](
        **fields,
        num_attention_heads=config.hidden_size // config.head_dim,
        intermediate_size=max(1, *config.neurons_per_layer),
        attn_implementation=config._attn_implementation,
    )
    options = {}
    if model is encoder and family != "electra":
        options["add_pooling_layer"] = encoder.pooler is not None and config.classifier_activation == activation
    dense = stock_models(type(dense_config))[auto_class](dense_config, **options).to(model.device, model.dtype)
    # Rename the student's weights.
    head_prefixes = HEADS[family].get(auto_class, ())
    prefixes = {new: old for old, new in RENAMED.items() if old.startswith(head_prefixes)}
    states = {}
    for name, value in model.state_dict().items():
        name = replace_prefix(name, prefixes)
        states[name.replace("mwp_student.", f"{dense.base_model_prefix}.", 1)] = value
    # BERT and RoBERTa also store the bias of the language modelling head outside its last layer.
    for prefix in ("cls.predictions.", "lm_head."):
        if f"{prefix}decoder.bias" in states:
            states[f"{prefix}bias"] = states[f"{prefix}decoder.bias"]
    # Pad the weights with zeros to the shapes of the target.
    padded = {name: torch.zeros_like(value) for name, value in dense.state_dict().items()}
    for name in padded.keys() & states:
        corner = tuple(map(slice, states[name].shape))
        padded[name][corner] = states[name]
    dense.load_state_dict(padded)
    return dense.train(model.training)


def _check(class_name: str, config: Any, family: str, auto_class: str | None, activation: str) -> None:
    """Raise `ValueError` if no model of the family can have the outputs of the student."""
    width = config.hidden_size
    embedding_size = config.embedding_size
    offset = config.position_offset
    family_offset = config.pad_token_id + 1 if family == "roberta" else 0
    num_heads = max(config.heads_per_layer)
    fault = None
    if auto_class is None:
        names = [student.__name__ for student in STUDENTS.values()]
        fault = f"{class_name} is not one of {', '.join(names)}"
    elif embedding_size == width:
        fault = f"embedding_size={embedding_size} equals the width of the encoder, but is projected"
    elif offset != family_offset:
        fault = f"position_offset={offset}, but for pad_token_id={config.pad_token_id} {family} has {family_offset}"
    elif auto_class in POOLED and config.classifier_activation != activation:
        fault = f"its classifier uses {config.classifier_activation}, but {family} uses {activation}"
    elif auto_class == "AutoModelForMaskedLM" and family == "electra" and config.hidden_act != "gelu":
        fault = f"its language modelling head has hidden_act={config.hidden_act!r}, but {family} uses gelu"
    elif width % config.head_dim or width < config.head_dim * num_heads:
        fault = f"{num_heads} heads of width {config.head_dim} do not fill an encoder of width {width}"
    if fault is not None:
        raise ValueError(f"Transformers has no model for this student: {fault}.")

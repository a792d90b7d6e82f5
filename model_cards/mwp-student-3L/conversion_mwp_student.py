"""Conversion of BERT- and RoBERTa-like encoders into students."""

from torch import nn
from transformers.utils import logging

from .configuration_mwp_student import MwpStudentConfig


logger = logging.get_logger(__name__)

# Model type of a source and whether its positions are counted as RoBERTa counts them.
SOURCES = {"bert": False, "roberta": True, "xlm-roberta": True, "camembert": True, "mwp_student": False}

SIZES = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "head_dim",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "position_offset",
)

COPIED = (
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "initializer_range",
    "layer_norm_eps",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "tie_word_embeddings",
)

# Fields that describe the tagging head; one of them given anew replaces all.
TAGGING = {"num_pos_tags", "pos_labels", "pos_tagger"}

# RoBERTa's names of the parameters of heads, and the student's, which are BERT's.
RENAMED = {
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.decoder.": "cls.predictions.decoder.",
    "classifier.dense.": "mwp_student.pooler.dense.",
    "classifier.out_proj.": "classifier.",
}


def select_layers(layers, num_hidden_layers):
    """
    Indices of the layers to take.

    Args:
        layers (`int` or `list[int]`, *optional*): All layers if `None`, the first ones if a number, or indices.
        num_hidden_layers (`int`): Layers of the source.

    Raises:
        `ValueError`: if there is no such layer, or none is taken.
    """
    if layers is None:
        return list(range(num_hidden_layers))
    if isinstance(layers, int):
        if not 1 <= layers <= num_hidden_layers:
            raise ValueError(
                f"layers={layers}: the encoder has {num_hidden_layers} layers, take 1 to {num_hidden_layers}."
            )
        return list(range(layers))
    indices = list(layers)
    wrong = [index for index in indices if not isinstance(index, int) or not 0 <= index < num_hidden_layers]
    if wrong or not indices:
        raise ValueError(
            f"layers={indices}: give at least one index, each from 0 to {num_hidden_layers - 1} (the encoder has "
            f"{num_hidden_layers} layers)."
        )
    return indices


def student_config(source, indices, **overrides):
    """[`MwpStudentConfig`] with the shapes of the layers `indices` of the encoder `source`, and `overrides`."""
    config = source.config
    layers = [source.encoder.layer[index] for index in indices]
    head_dims = [layer.attention.self.attention_head_size for layer in layers if layer.attention.self is not None]
    head_dim = head_dims[0] if head_dims else config.head_dim
    heads = [
        0 if layer.attention.self is None else layer.attention.self.query.out_features // head_dim for layer in layers
    ]
    neurons = [0 if layer.intermediate is None else layer.intermediate.dense.out_features for layer in layers]
    embeddings = source.embeddings
    offset = config.pad_token_id + 1 if SOURCES[config.model_type] else getattr(config, "position_offset", 0)
    fields = {name: getattr(config, name) for name in COPIED}
    if config.model_type == "mwp_student":
        tagging = ("num_pos_tags", "pos_labels", "pos_tagger") if not TAGGING & set(overrides) else ()
        fields.update({name: getattr(config, name) for name in (*tagging, "pos_loss_weight", "sparse_prediction")})
    fields.update(
        vocab_size=embeddings.word_embeddings.num_embeddings,
        hidden_size=embeddings.word_embeddings.embedding_dim,
        num_hidden_layers=len(layers),
        num_attention_heads=heads[0] if len(set(heads)) == 1 else heads,
        head_dim=head_dim,
        intermediate_size=neurons[0] if len(set(neurons)) == 1 else neurons,
        max_position_embeddings=embeddings.position_embeddings.num_embeddings,
        type_vocab_size=embeddings.token_type_embeddings.num_embeddings,
        position_offset=offset,
        attn_implementation=config._attn_implementation,
    )
    if not {"num_labels", "id2label", "label2id"} & set(overrides):
        fields.update(id2label=config.id2label, label2id=config.label2id, problem_type=config.problem_type)
    return MwpStudentConfig(**{**fields, **overrides})


def encoder_state_dict(source, indices):
    """
    Weights of the encoder `source` with the layers `indices` renumbered 0, 1, 2, ...; the tensors are not copied. What
    is left of a sublayer whose heads or neurons were all cut away (a bias) is not part of a student.
    """
    states = {
        f"{part}.{name}": value
        for part in ("embeddings", "pooler")
        if getattr(source, part) is not None
        for name, value in getattr(source, part).state_dict().items()
    }
    for new_index, index in enumerate(indices):
        layer = source.encoder.layer[index]
        dropped = ()
        if layer.attention.self is not None and not layer.attention.self.query.out_features:
            dropped += ("attention.self.", "attention.output.dense.")
        if layer.intermediate is not None and not layer.intermediate.dense.out_features:
            dropped += ("intermediate.", "output.dense.")
        for name, value in layer.state_dict().items():
            if not name.startswith(dropped):
                states[f"encoder.layer.{new_index}.{name}"] = value
    return states


def head_state_dict(model):
    """Weights of the heads of `model` which a student may have, in the student's names; the tensors are not copied."""
    prefixes = ("cls.predictions.", "cls.pos_tagger.", "lm_head.")
    if type(model).__name__.endswith("ForSequenceClassification"):
        prefixes += ("classifier.",)
    states = {}
    for name, value in model.state_dict().items():
        if name.startswith(prefixes):
            old = next((old for old in RENAMED if name.startswith(old)), "")
            states[RENAMED.get(old, "") + name.removeprefix(old)] = value
    return states


def build_from_encoder(cls, encoder, layers=None, add_pooling_layer=None, **overrides):
    """
    Makes a student of class `cls` from `encoder`; `from_encoder` of the model classes calls this and documents it.

    Raises:
        `ValueError`: if the source is no encoder of a known type, a layer does not exist, or a size is in `overrides`.
    """
    source = getattr(encoder, "base_model", None)
    config = getattr(source, "config", None)
    if getattr(config, "model_type", None) not in SOURCES or getattr(config, "is_decoder", False):
        raise ValueError(
            f"Cannot make a student from {type(encoder).__name__}: give an encoder (no decoder) of one of the types "
            f"{', '.join(SOURCES)}, for instance `AutoModel.from_pretrained(...)`."
        )
    sizes = sorted(set(overrides) & set(SIZES))
    if sizes:
        raise ValueError(f"{', '.join(sizes)}: sizes come with the weights of the encoder and cannot be changed here.")
    if any(
        isinstance(getattr(hook, "__self__", None), nn.Module)
        for layer in source.encoder.layer
        for hook in layer._forward_hooks.values()
    ):
        logger.warning(
            "The encoder's layers carry bottleneck networks, which the student does not take along: its layers read "
            "states that they were not trained on."
        )
    indices = select_layers(layers, len(source.encoder.layer))
    model_kwargs = {} if add_pooling_layer is None else {"add_pooling_layer": add_pooling_layer}
    student = cls(student_config(source, indices, **overrides), **model_kwargs).to(encoder.device, encoder.dtype)
    if student.base_model is student and add_pooling_layer is None and source.pooler is None:
        student.pooler = None
    missing, unexpected = student.base_model.load_state_dict(encoder_state_dict(source, indices), strict=False)
    wrong = [name for name in missing + unexpected if not name.startswith("pooler.")]
    if wrong:
        raise ValueError(
            f"{type(encoder).__name__} has not the parameters of a plain encoder ({', '.join(wrong[:4])}, ...): merge "
            "adapters and undo quantisation first."
        )
    shapes = {name: value.shape for name, value in student.state_dict().items()}
    heads = {name: value for name, value in head_state_dict(encoder).items() if shapes.get(name) == value.shape}
    student.load_state_dict(heads, strict=False)
    if missing and f"{student.base_model_prefix}.{missing[0]}" not in heads:
        logger.warning("The source has no pooler: that of the student is new, train it before using it.")
    return student.train(encoder.training)

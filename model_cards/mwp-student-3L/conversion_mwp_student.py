"""Conversion of BERT- and RoBERTa-like encoders into students."""

from torch import nn
from transformers.utils import logging

from .configuration_mwp_student import MwpStudentConfig


logger = logging.get_logger(__name__)

# Types of encoders, and whether they count positions as RoBERTa does.
SOURCES = {
    "bert": False,
    "roberta": True,
    "xlm-roberta": True,
    "camembert": True,
    "electra": False,
    "distilbert": False,
    "mwp_student": False,
}

# Fields that the weights of the encoder decide.
SIZES = (
    "vocab_size",
    "hidden_size",
    "embedding_size",
    "num_hidden_layers",
    "num_attention_heads",
    "head_dim",
    "intermediate_size",
    "max_position_embeddings",
    "type_vocab_size",
    "position_offset",
)

# Fields that a student copies from the config of the encoder.
COPIED = (
    "hidden_act",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "classifier_dropout",
    "initializer_range",
    "pad_token_id",
    "bos_token_id",
    "eos_token_id",
    "tie_word_embeddings",
)

# Names of some of these fields in DistilBERT.
DISTILBERT_FIELDS = {
    "hidden_act": "activation",
    "hidden_dropout_prob": "dropout",
    "attention_probs_dropout_prob": "attention_dropout",
    "classifier_dropout": "seq_classif_dropout",
}

# Fields of the tagging head. If one is given, none is copied.
TAGGING = ("num_pos_tags", "pos_labels", "pos_tagger")

# Prefixes of the parameters of heads in other models and in the student, which are BERT's.
RENAMED = {
    "lm_head.dense.": "cls.predictions.transform.dense.",
    "lm_head.layer_norm.": "cls.predictions.transform.LayerNorm.",
    "lm_head.decoder.": "cls.predictions.decoder.",
    "vocab_transform.": "cls.predictions.transform.dense.",
    "vocab_layer_norm.": "cls.predictions.transform.LayerNorm.",
    "vocab_projector.": "cls.predictions.decoder.",
    "generator_predictions.": "cls.predictions.transform.",
    "generator_lm_head.": "cls.predictions.decoder.",
    "classifier.dense.": "mwp_student.pooler.dense.",
    "pre_classifier.": "mwp_student.pooler.dense.",
    "sequence_summary.summary.": "mwp_student.pooler.dense.",
    "classifier.out_proj.": "classifier.",
}

# Prefixes of the parameters of other heads, by the end of the class names of source and student.
TASK_HEADS = {
    "ForSequenceClassification": ("classifier.", "pre_classifier."),
    "ForTokenClassification": ("classifier.",),
    "ForQuestionAnswering": ("qa_outputs.",),
    "ForMultipleChoice": ("classifier.", "pre_classifier.", "sequence_summary."),
}

# Parts of parameter names in DistilBERT's encoder and in BERT's.
DISTILBERT = {
    "transformer.layer.": "encoder.layer.",
    ".attention.q_lin.": ".attention.self.query.",
    ".attention.k_lin.": ".attention.self.key.",
    ".attention.v_lin.": ".attention.self.value.",
    ".attention.out_lin.": ".attention.output.dense.",
    ".sa_layer_norm.": ".attention.output.LayerNorm.",
    ".ffn.lin1.": ".intermediate.dense.",
    ".ffn.lin2.": ".output.dense.",
    ".output_layer_norm.": ".output.LayerNorm.",
}

# Activation between the two linear layers of a classifier, if it is not tanh.
CLASSIFIER_ACTIVATIONS = {"distilbert": "relu", "electra": "gelu"}


def select_layers(layers, num_hidden_layers):
    """Return indices of layers: all if `layers` is `None`, the first ones if a number, or those of a list."""
    if layers is None:
        layers = num_hidden_layers
    indices = list(range(layers)) if isinstance(layers, int) else list(layers)
    exist = [isinstance(index, int) and 0 <= index < num_hidden_layers for index in indices]
    if not indices or not all(exist):
        raise ValueError(f"layers={layers} must be a count or indices of the encoder's {num_hidden_layers} layers.")
    return indices


def encoder_state_dict(source, indices):
    """Return the weights of the encoder `source`, not copied, with BERT's names and the layers `indices` only."""
    states = source.state_dict()
    if source.config.model_type == "distilbert":
        for old, new in DISTILBERT.items():
            states = {name.replace(old, new): value for name, value in states.items()}
        # DistilBERT has no token types.
        words = states["embeddings.word_embeddings.weight"]
        states["embeddings.token_type_embeddings.weight"] = words.new_zeros(2, words.shape[1])
    selected = {name: value for name, value in states.items() if not name.startswith("encoder.layer.")}
    for new_index, index in enumerate(indices):
        prefix = f"encoder.layer.{index}."
        for name, value in states.items():
            # A student lacks linear layers without rows or columns.
            if name.startswith(prefix) and value.numel():
                selected[f"encoder.layer.{new_index}.{name.removeprefix(prefix)}"] = value
    return selected


def common_size(sizes):
    """Return the size that all layers have, or the list of sizes if they differ."""
    return sizes[0] if len(set(sizes)) == 1 else sizes


def student_config(source, states, num_hidden_layers, **overrides):
    """Return the [`MwpStudentConfig`] for the weights `states` of the encoder `source`, with `overrides`."""
    config = source.config
    words = states["embeddings.word_embeddings.weight"]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    heads = []
    neurons = []
    for layer in range(num_hidden_layers):
        # A layer without heads or neurons has no such weight.
        query = states.get(f"encoder.layer.{layer}.attention.self.query.weight", ())
        intermediate = states.get(f"encoder.layer.{layer}.intermediate.dense.weight", ())
        heads.append(len(query) // head_dim)
        neurons.append(len(intermediate))
    hidden_size = words.shape[1]
    embedding_size = None
    if "embeddings_project.weight" in states:
        hidden_size = len(states["embeddings_project.weight"])
        embedding_size = words.shape[1]
    offset = getattr(config, "position_offset", 0)
    if SOURCES[config.model_type]:
        offset = config.pad_token_id + 1
    renamed = DISTILBERT_FIELDS if config.model_type == "distilbert" else {}
    fields = {name: getattr(config, renamed.get(name, name)) for name in COPIED}
    fields.update(
        layer_norm_eps=getattr(config, "layer_norm_eps", 1e-12),
        classifier_activation=CLASSIFIER_ACTIVATIONS.get(config.model_type, "tanh"),
        source_type=config.model_type,
        attn_implementation=config._attn_implementation,
    )
    if config.model_type == "mwp_student":
        names = ("pos_loss_weight", "sparse_prediction", "classifier_activation", "source_type")
        if not set(TAGGING) & set(overrides):
            names += TAGGING
        fields.update({name: getattr(config, name) for name in names})
    if not {"num_labels", "id2label", "label2id"} & set(overrides):
        fields.update(id2label=config.id2label, label2id=config.label2id, problem_type=config.problem_type)
    return MwpStudentConfig(
        vocab_size=len(words),
        hidden_size=hidden_size,
        embedding_size=embedding_size,
        num_hidden_layers=num_hidden_layers,
        num_attention_heads=common_size(heads),
        head_dim=head_dim,
        intermediate_size=common_size(neurons),
        max_position_embeddings=len(states["embeddings.position_embeddings.weight"]),
        type_vocab_size=len(states["embeddings.token_type_embeddings.weight"]),
        position_offset=offset,
        **(fields | overrides),
    )


def replace_prefix(name, prefixes):
    """Return a name whose beginning, if it is a key of `prefixes`, is replaced by the value."""
    for old, new in prefixes.items():
        if name.startswith(old):
            return new + name.removeprefix(old)
    return name


def head_state_dict(model, student_class):
    """Return the weights of heads of `model` that a student of a class may have, not copied, with its names."""
    prefixes = ("cls.predictions.", "cls.pos_tagger.", "lm_head.", "vocab_", "generator_")
    for task, names in TASK_HEADS.items():
        has_task = any(base.__name__.endswith(task) for base in student_class.__mro__)
        if has_task and type(model).__name__.endswith(task):
            prefixes += names
    states = {}
    for name, value in model.state_dict().items():
        if name.startswith(prefixes):
            states[replace_prefix(name, RENAMED)] = value
    return states


def build_from_encoder(cls, encoder, layers=None, add_pooling_layer=None, **overrides):
    """Create a student of class `cls`; see `MwpStudentPreTrainedModel.from_encoder`."""
    source = getattr(encoder, "base_model", None)
    config = getattr(source, "config", None)
    if getattr(config, "model_type", None) not in SOURCES or getattr(config, "is_decoder", False):
        name = type(encoder).__name__
        raise ValueError(f"Cannot make a student from {name}. Pass an encoder of the type {', '.join(SOURCES)}.")
    sizes = sorted(set(overrides) & set(SIZES))
    if sizes:
        raise ValueError(f"{', '.join(sizes)} cannot be changed, because sizes come with the weights of the encoder.")
    for module in source.modules():
        if getattr(module, "closed_heads", None) or getattr(module, "closed_neurons", None):
            raise ValueError(
                "A student would not have the encoder's closed gates. Call `hf_mwp.prune_heads(model, {})`."
            )
    stack = source.transformer if config.model_type == "distilbert" else source.encoder
    hooks = []
    for layer in stack.layer:
        hooks += layer._forward_hooks.values()
    # A hook that is a method of a module belongs to a bottleneck network.
    if any(isinstance(getattr(hook, "__self__", None), nn.Module) for hook in hooks):
        logger.warning("The student does not copy the bottleneck networks of the encoder's layers.")
    indices = select_layers(layers, len(stack.layer))
    states = encoder_state_dict(source, indices)
    if getattr(config, "cut_heads", None):
        overrides["cut_heads"] = [config.cut_heads[index] for index in indices]
    options = {}
    if add_pooling_layer is not None:
        options["add_pooling_layer"] = add_pooling_layer
    student = cls(student_config(source, states, len(indices), **overrides), **options)
    student = student.to(encoder.device, encoder.dtype)
    if student.base_model is student and add_pooling_layer is None and getattr(source, "pooler", None) is None:
        student.pooler = None
    missing, unexpected = student.base_model.load_state_dict(states, strict=False)
    mismatched = [name for name in missing + unexpected if not name.startswith("pooler.")]
    if mismatched:
        names = ", ".join(mismatched[:4])
        raise ValueError(f"This is no plain encoder ({names}, ...). Merge adapters and undo quantisation first.")
    # Copy the heads that both models have.
    student_states = student.state_dict()
    heads = {}
    for name, value in head_state_dict(encoder, cls).items():
        if name in student_states and student_states[name].shape == value.shape:
            heads[name] = value
    student.load_state_dict(heads, strict=False)
    if missing and f"{student.base_model_prefix}.{missing[0]}" not in heads:
        logger.warning("The source has no pooler. The student's pooler is new and must be trained.")
    return student.train(encoder.training)

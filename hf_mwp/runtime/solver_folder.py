"""Description of a solver's folder: fields of its configuration, and names and shapes of its weights."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_mwp.utils.json_fields import (
    OBJECT,
    TEXT,
    Field,
    check_fields,
    choice,
    damaged,
    integer,
    list_of,
    number,
    optional,
    read_mapping,
)
from hf_mwp.utils.usage_error import UsageError, not_a_solver

from .encoder import GRAPH, STUDENT, size_of_layer
from .output_vocabulary import check_symbols
from .tree_search import TreeDecoder
from .weights import FILE_NAME, INDEX_NAME, SCALE, Weights


CONFIG_NAME = "config.json"
SOLVER_TYPE = "mwp_solver"
Shapes = dict[str, tuple[int, ...]]

_SIZE = integer(1, 1_000_000)
_COUNTS = Field((int, list), 0, 1_000_000, items=integer(0, 1_000_000))  # of each layer, or one for all layers
SOLVER = {
    "encoder_config": OBJECT,
    "decoder_config": OBJECT,
    "bottleneck_layers": optional(list_of(integer(1, 1_000)), default=()),
    "bottleneck_size": optional(_SIZE),
}
ENCODER = {
    "vocab_size": integer(1, 10_000_000),
    "hidden_size": _SIZE,
    "embedding_size": optional(_SIZE),
    "num_hidden_layers": integer(1, 1_000),
    "num_attention_heads": _COUNTS,
    "head_dim": _SIZE,
    "intermediate_size": _COUNTS,
    "hidden_act": TEXT,
    "max_position_embeddings": _SIZE,
    "type_vocab_size": _SIZE,
    "position_offset": integer(0, 1_000_000),
    "pad_token_id": optional(integer(0, 10_000_000)),
    "layer_norm_eps": number(0, 1),
}
DECODER = {
    "hidden_size": _SIZE,
    "encoder_hidden_size": _SIZE,
    "operator_embedding_size": _SIZE,
    "operators": list_of(TEXT),
    "constants": list_of(TEXT),
    "root_goal": choice("cls", "mean"),
    # The limit bounds the time of a search. The longest equation of Math23k has 41 symbols.
    "max_length": integer(1, 1_000),
}


def read_config(folder: str | Path) -> dict[str, Any]:
    """
    Read the configuration of a solver, and check the fields of a student as its encoder and of a tree decoder. Other
    encoders and decoders are checked by their own classes.

    Raises:
        UsageError: The file is missing or damaged, the model is not a solver, or a field is missing or does not fit.
    """
    path = Path(folder) / CONFIG_NAME
    content = read_mapping(path)
    model_type = content.get("model_type")
    if model_type != SOLVER_TYPE:
        raise UsageError(not_a_solver(folder, model_type))
    return check_config(content, path)


def check_config(content: Mapping[str, Any], path: Path) -> dict[str, Any]:
    """Return the fields of a solver's configuration; see [`read_config`]."""
    config = check_fields(content, SOLVER, path)
    if _is_student(config):
        fields = check_fields(config["encoder_config"], ENCODER, path, "encoder_config")
        _check_encoder(fields, path)
        config["encoder_config"] = config["encoder_config"] | fields
        _check_bottlenecks(config, path)
    if has_tree_decoder(config):
        fields = check_fields(config["decoder_config"], DECODER, path, "decoder_config")
        check_symbols(fields["operators"], fields["constants"], path)
        if not fields["operators"]:
            raise damaged(f"{path}: `decoder_config.operators` is empty")
        config["decoder_config"] = config["decoder_config"] | fields
        width = config["encoder_config"].get("hidden_size")
        if _is_student(config) and fields["encoder_hidden_size"] != width:
            raise damaged(
                f"{path}: `encoder_config.hidden_size` is {width}, but `decoder_config.encoder_hidden_size` is "
                f"{fields['encoder_hidden_size']}"
            )
    return config


def has_tree_decoder(config: Mapping[str, Any]) -> bool:
    """Return whether the configuration of a solver has the decoder of the runtime."""
    return config["decoder_config"].get("model_type") == TreeDecoder.model_type


def _is_student(config: Mapping[str, Any]) -> bool:
    return config["encoder_config"].get("model_type") == STUDENT


def _check_encoder(fields: Mapping[str, Any], path: Path) -> None:
    layers = fields["num_hidden_layers"]
    for name in ("num_attention_heads", "intermediate_size"):
        counts = fields[name]
        if isinstance(counts, list) and len(counts) != layers:
            raise damaged(f"{path}: `encoder_config.{name}` has {len(counts)} items for {layers} layers")
    offset = fields["position_offset"]
    positions = fields["max_position_embeddings"]
    if offset >= positions:
        raise damaged(
            f"{path}: `encoder_config.position_offset` must be below `max_position_embeddings` ({positions}), "
            f"not {offset}"
        )
    if offset and fields["pad_token_id"] is None:
        raise damaged(f"{path}: `encoder_config.pad_token_id` is missing")


def _check_bottlenecks(config: Mapping[str, Any], path: Path) -> None:
    layers = config["bottleneck_layers"]
    size = config["bottleneck_size"]
    num_layers = config["encoder_config"]["num_hidden_layers"]
    has_repetition = len(set(layers)) != len(layers)
    has_size = size is not None
    if has_repetition or max(layers, default=0) > num_layers or bool(layers) != has_size:
        raise damaged(
            f"{path}: `bottleneck_layers` {layers!r:.80} and `bottleneck_size` {size} do not fit {num_layers} layers"
        )


def check_weights(weights: Weights, config: Mapping[str, Any], any_size: bool = False) -> None:
    """Raise `UsageError` unless the weights of a student with a tree decoder are those of its configuration, with the
    same names and (unless `any_size`) shapes."""
    if not has_tree_decoder(config):
        return
    expected = decoder_shapes(config["decoder_config"])
    has_graph = (weights.folder / GRAPH).is_file()
    if not has_graph and not _is_student(config):
        return
    if not has_graph:
        expected |= encoder_shapes(config)
    missing = []
    different = []
    for name, shape in expected.items():
        if name not in weights:
            missing.append(name)
        elif not any_size and weights.stored[name].shape != shape:
            different.append((name, weights.stored[name].shape, shape))
    # An int8 tensor has a scale for each row.
    scales = {f"{name}{SCALE}": shape[:1] for name, shape in expected.items() if is_int8(weights, name)}
    missing += [name for name in scales if name not in weights]
    unexpected = []
    if not has_graph:
        for name in weights.stored:
            if name in scales and weights.stored[name].shape != scales[name]:
                different.append((name, weights.stored[name].shape, scales[name]))
            elif name not in expected and name not in scales:
                unexpected.append(name)
    file = FILE_NAME if (weights.folder / FILE_NAME).is_file() else INDEX_NAME
    fault = weights_fault(file, missing, unexpected, different)
    if fault is not None:
        raise UsageError(f"{weights.folder}: {fault}. Download or train it again.")


def check_model_folder(folder: Path, any_size: bool = False) -> None:
    """Raise `UsageError` for a damaged configuration or weights; see [`read_config`] and [`check_weights`]."""
    config = read_config(folder)
    if has_tree_decoder(config):
        check_weights(Weights(folder), config, any_size)


def is_int8(weights: Weights, name: str) -> bool:
    """Return whether a tensor is stored as int8, with scales."""
    return name in weights and weights.stored[name].dtype == "I8"


def weights_fault(
    file: str,
    missing: Sequence[str],
    unexpected: Sequence[str],
    different: Sequence[tuple[str, Sequence[int], Sequence[int]]],
) -> str | None:
    """Return the fault of a solver's weights, or `None`: names that are missing or unexpected, or names with the
    shape in the file and the shape by the configuration."""
    foreign = "weights and config.json belong to different models"
    if missing:
        return f"{file} lacks {_listed(missing)} of the solver, which would be random numbers"
    if unexpected:
        return f"{file} has {_listed(unexpected)} that the solver of config.json does not have; {foreign}"
    if different:
        name, stored_shape, config_shape = min(different)
        return f"{name} is {tuple(stored_shape)} in {file} and {tuple(config_shape)} by config.json; {foreign}"
    return None


def _listed(names: Sequence[str]) -> str:
    examples = sorted(names)[:3]
    if len(names) > 3:
        examples.append("...")
    return f"{len(names)} weight{'s' * (len(names) > 1)} ({', '.join(examples)})"


def encoder_shapes(config: Mapping[str, Any]) -> Shapes:
    """Return the shapes of a student's weights, and of the bottleneck networks in it, by name."""
    encoder = config["encoder_config"]
    width = encoder["hidden_size"]
    embedding_width = encoder["embedding_size"] or width
    shapes = {
        "encoder.embeddings.word_embeddings.weight": (encoder["vocab_size"], embedding_width),
        "encoder.embeddings.position_embeddings.weight": (encoder["max_position_embeddings"], embedding_width),
        "encoder.embeddings.token_type_embeddings.weight": (encoder["type_vocab_size"], embedding_width),
    }
    shapes |= _norm("encoder.embeddings.LayerNorm", embedding_width)
    if encoder["embedding_size"] is not None:
        shapes |= _linear("encoder.embeddings_project", embedding_width, width)
    for index in range(encoder["num_hidden_layers"]):
        layer = f"encoder.encoder.layer.{index}"
        features = size_of_layer(encoder["num_attention_heads"], index) * encoder["head_dim"]
        neurons = size_of_layer(encoder["intermediate_size"], index)
        if features:
            for name in ("query", "key", "value"):
                shapes |= _linear(f"{layer}.attention.self.{name}", width, features)
        shapes |= _linear(f"{layer}.attention.output.dense", features, width)
        shapes |= _norm(f"{layer}.attention.output.LayerNorm", width)
        if neurons:
            shapes |= _linear(f"{layer}.intermediate.dense", width, neurons)
        shapes |= _linear(f"{layer}.output.dense", neurons, width)
        shapes |= _norm(f"{layer}.output.LayerNorm", width)
    for index in config["bottleneck_layers"]:
        size = config["bottleneck_size"]
        shapes |= _linear(f"bottlenecks.{index}.reduce", width, size)
        shapes[f"bottlenecks.{index}.expand_weight"] = (width, size)
        shapes[f"bottlenecks.{index}.expand_bias"] = (width,)
    return shapes


def decoder_shapes(decoder: Mapping[str, Any]) -> Shapes:
    """Return the shapes of a tree decoder's weights by name."""
    width = decoder["hidden_size"]
    operator_width = decoder["operator_embedding_size"]
    operators = len(decoder["operators"])
    shapes = {
        "decoder.operator_embedding.weight": (operators, operator_width),
        "decoder.constant_embedding": (len(decoder["constants"]), width),
    }
    if decoder["encoder_hidden_size"] != width:
        shapes |= _linear("decoder.input_projection", decoder["encoder_hidden_size"], width)
    # Value and gate are one linear layer.
    shapes |= _linear("decoder.goal_left.linear", width, 2 * width)
    shapes |= _linear("decoder.goal_right.linear", 2 * width, 2 * width)
    shapes |= _linear("decoder.generate_children.linear", 2 * width + operator_width, 4 * width)
    shapes |= _linear("decoder.merge.linear", 2 * width + operator_width, 2 * width)
    shapes |= _linear("decoder.operator_scorer", 2 * width, operators)
    for name, query_width in (("attention", width), ("candidate_scorer", 2 * width)):
        shapes |= _linear(f"decoder.{name}.query", query_width, width)
        shapes[f"decoder.{name}.key.weight"] = (width, width)
        shapes[f"decoder.{name}.score.weight"] = (1, width)
    return shapes


def _linear(prefix: str, inputs: int, outputs: int) -> Shapes:
    """Return the shapes of a linear layer, which has only a bias if all its inputs are pruned."""
    shapes = {f"{prefix}.bias": (outputs,)}
    if inputs:
        shapes[f"{prefix}.weight"] = (outputs, inputs)
    return shapes


def _norm(prefix: str, width: int) -> Shapes:
    return {f"{prefix}.weight": (width,), f"{prefix}.bias": (width,)}

"""Encoders of the runtime: students in NumPy, and ONNX graphs of all encoders."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hf_mwp.utils.usage_error import UsageError

from .few_rows_linear import FewRowsLinear
from .weights import Linear, Weights


GRAPH = "encoder.onnx"
STUDENT = "mwp_student"
"""Type of the encoder that the runtime computes without a graph."""

BLOCK_WIDTH = 32
"""Number of columns of the blocks of matrices, for texts of some 40 tokens."""


class Encoder:
    """`MwpStudentModel` in NumPy for one text, with bottleneck networks after `bottleneck_layers` (from 1)."""

    def __init__(self, weights: Weights, config: Mapping[str, Any], bottleneck_layers=()) -> None:
        check_encoder(config)
        self.weights = weights
        self.config = config
        self.words = weights.table("encoder.embeddings.word_embeddings.weight")
        self.positions = weights.table("encoder.embeddings.position_embeddings.weight")
        self.activation = ACTIVATIONS[config["hidden_act"]]
        self.epsilon = config["layer_norm_eps"]
        self.projection = None
        if config.get("embedding_size") is not None:
            self.projection = weights.linear("encoder.embeddings_project")
        self.embedding_norm = self._norm("encoder.embeddings.LayerNorm")
        self.segment = weights["encoder.embeddings.token_type_embeddings.weight"][:1]
        self.layers = [self._layer(index) for index in range(config["num_hidden_layers"])]
        self.bottlenecks = {number: self._bottleneck(f"bottlenecks.{number}") for number in bottleneck_layers}

    def __call__(self, input_ids: np.ndarray) -> np.ndarray:
        """Compute the hidden states `(S, H)` of a text's tokens `(S,)`."""
        words = self.words.rows(input_ids)
        positions = self.positions.rows(self._positions(input_ids))
        states = self._normalise(words + self.segment + positions, self.embedding_norm)
        if self.projection is not None:
            states = apply_linear(self.projection, states)
        for number, layer in enumerate(self.layers, 1):
            attended = self._attend(states, layer)
            states = self._normalise(attended + states, layer["attention_norm"])
            fed_forward = self._feed_forward(states, layer)
            states = self._normalise(fed_forward + states, layer["output_norm"])
            if number in self.bottlenecks:
                reduce, expand = self.bottlenecks[number]
                states = apply_linear(expand, apply_linear(reduce, states))
        return states

    def _positions(self, input_ids: np.ndarray) -> np.ndarray:
        offset = self.config["position_offset"]
        if not offset:
            return np.arange(len(input_ids))
        is_token = input_ids != self.config["pad_token_id"]
        return np.cumsum(is_token) * is_token + offset - 1

    def _attend(self, states: np.ndarray, layer: Mapping[str, Any]) -> np.ndarray:
        if layer["heads"] == 0:
            return layer["attention_output"]
        projected = layer["query_key_value"](states)
        projected = projected.reshape(len(states), 3, layer["heads"], self.config["head_dim"])
        query, key, value = projected.transpose(1, 2, 0, 3)
        return layer["attention_output"](attention(query, key, value))

    def _feed_forward(self, states: np.ndarray, layer: Mapping[str, Any]) -> np.ndarray:
        if layer["neurons"] == 0:
            return layer["output"]
        hidden = self.activation(layer["intermediate"](states))
        return layer["output"](hidden)

    def _normalise(self, states: np.ndarray, norm: Linear) -> np.ndarray:
        width = states.shape[-1]
        # A product with equal weights is faster than `mean`.
        centred = states - states @ np.full((width, 1), 1 / width, np.float32)
        deviation = np.einsum("sh,sh->s", centred, centred)[:, None]
        deviation /= width
        deviation += self.epsilon
        np.sqrt(deviation, out=deviation)
        centred /= deviation
        weight, bias = norm
        centred *= weight
        centred += bias
        return centred

    def _norm(self, prefix: str) -> Linear:
        return self.weights[f"{prefix}.weight"], self.weights[f"{prefix}.bias"]

    def _layer(self, index: int) -> dict[str, Any]:
        prefix = f"encoder.encoder.layer.{index}"
        layer = {
            "heads": size_of_layer(self.config["num_attention_heads"], index),
            "neurons": size_of_layer(self.config["intermediate_size"], index),
            "attention_norm": self._norm(f"{prefix}.attention.output.LayerNorm"),
            "output_norm": self._norm(f"{prefix}.output.LayerNorm"),
            "attention_output": self._last(f"{prefix}.attention.output.dense"),
            "output": self._last(f"{prefix}.output.dense"),
        }
        if layer["heads"]:
            query, query_bias = self.weights.linear(f"{prefix}.attention.self.query")
            key, key_bias = self.weights.linear(f"{prefix}.attention.self.key")
            value, value_bias = self.weights.linear(f"{prefix}.attention.self.value")
            # Scale the queries here instead of the scores of each text.
            scaling = self.config["head_dim"] ** -0.5
            matrix = np.concatenate([query * scaling, key, value], -1)
            bias = np.concatenate([query_bias * scaling, key_bias, value_bias], -1)
            layer["query_key_value"] = FewRowsLinear(matrix, bias, BLOCK_WIDTH)
        if layer["neurons"]:
            layer["intermediate"] = FewRowsLinear(*self.weights.linear(f"{prefix}.intermediate.dense"), BLOCK_WIDTH)
        return layer

    def _last(self, prefix: str) -> FewRowsLinear | np.ndarray:
        """Return a sublayer's last linear layer, or its bias if all its inputs are pruned."""
        if f"{prefix}.weight" in self.weights:
            return FewRowsLinear(*self.weights.linear(prefix), BLOCK_WIDTH)
        return self.weights[f"{prefix}.bias"]

    def _bottleneck(self, prefix: str) -> tuple[Linear, Linear]:
        expand = np.ascontiguousarray(self.weights[f"{prefix}.expand_weight"].T)
        return self.weights.linear(f"{prefix}.reduce"), (expand, self.weights[f"{prefix}.expand_bias"])


def check_encoder(config: Mapping[str, Any]) -> None:
    """Raise `UsageError` if [`Encoder`] does not support the type or the activation of an encoder."""
    model_type = config.get("model_type")
    activation = config.get("hidden_act")
    if model_type != STUDENT or activation not in ACTIVATIONS:
        encoder = f"encoder of the type {model_type} with the activation {activation}"
        raise UsageError(f"The runtime needs `hf-mwp export --format onnx` for an {encoder}.")


def load_graph(path: Path, width: int) -> Callable[[np.ndarray], np.ndarray]:
    """Load the graph of `hf-mwp export --format onnx` as a function from tokens `(S,)` to hidden states `(S, width)`.
    Raises `UsageError` if onnxruntime is not installed, or the graph is damaged or has other inputs or outputs."""
    try:
        from onnxruntime import InferenceSession, SessionOptions
    except ImportError as error:
        raise UsageError(f"{path} needs onnxruntime. Install it with `pip install onnxruntime`.") from error
    options = SessionOptions()
    options.log_severity_level = 3
    # NumPy and PyTorch use this variable, too. 0 means all cores.
    options.intra_op_num_threads = int(os.environ.get("OMP_NUM_THREADS") or 0)
    try:
        session = InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime raises a different class for each fault.
        raise UsageError(f"{path} cannot be read ({error}). Export the solver again.") from error
    inputs = [node.name for node in session.get_inputs()]
    shapes = [node.shape for node in session.get_outputs()]
    # The width may be symbolic, a name.
    widths = [shape[-1] for shape in shapes if shape and isinstance(shape[-1], int)]
    if inputs != ["input_ids"] or len(shapes) != 1 or widths not in ([], [width]):
        raise UsageError(
            f"{path} has inputs {inputs} and outputs of the shapes {shapes}, not tokens and states of width {width}. "
            "Export the solver again."
        )

    def encode(input_ids: np.ndarray) -> np.ndarray:
        batch = {"input_ids": input_ids[None].astype(np.int64)}
        (states,) = session.run(None, batch)
        return states[0]

    return encode


def apply_linear(linear: Linear, x: np.ndarray) -> np.ndarray:
    """Multiply by the matrix `(in, out)` of a linear layer and add its bias."""
    matrix, bias = linear
    output = x @ matrix
    output += bias
    return output


MAX_SCORES = 2**18
"""Maximum number of attention scores that are computed together, which fit into the cache of a core, unless those of
one head are more."""


def attention(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Compute the contexts `(S, heads * D)` of scaled queries, keys and values `(heads, S, D)`."""
    num_heads, length, size = query.shape
    context = np.empty((length, num_heads, size), np.float32)
    num_together = max(MAX_SCORES // length**2, 1)
    for start in range(0, num_heads, num_together):
        heads = slice(start, start + num_together)
        scores = query[heads] @ key[heads].transpose(0, 2, 1)
        scores -= scores.max(-1, keepdims=True)
        weights = np.exp(scores, out=scores)
        # Normalise the contexts instead of the weights, which are more.
        head_contexts = weights @ value[heads]
        head_contexts /= weights.sum(-1, keepdims=True)
        context[:, heads] = head_contexts.transpose(1, 0, 2)
    return context.reshape(length, -1)


def size_of_layer(sizes: int | Sequence[int], layer: int) -> int:
    """Return the size of a layer from a configuration that has one size for all layers or one for each."""
    return sizes if isinstance(sizes, int) else sizes[layer]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Compute the softmax over the last axis, in place."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


# Coefficients of x, x^3, ..., x^13 in a polynomial p whose tanh(p(x)) approximates erf(x / sqrt(2)): a minimax fit of
# the function below on [0, 6], with an error of at most 7e-8 there; beyond, both are 1 in float32.
_ERROR_FUNCTION = tuple(
    np.float32(value)
    for value in (
        0.797884268,
        0.0363341492,
        -3.30267568e-05,
        -5.527337e-05,
        3.97406845e-06,
        -1.33783055e-07,
        1.81392401e-09,
    )
)


def gelu(x: np.ndarray) -> np.ndarray:
    """Compute `x * Phi(x)` in float32 with an approximation, because NumPy has no error function."""
    *lower, highest = _ERROR_FUNCTION
    square = x * x
    result = square * highest
    for coefficient in reversed(lower[1:]):
        result += coefficient
        result *= square
    result += lower[0]
    result *= x
    np.tanh(result, out=result)
    result += 1
    result *= x
    result *= np.float32(0.5)
    return result


def _tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x**3)))


ACTIVATIONS = {
    "gelu": gelu,
    "relu": lambda x: np.maximum(x, 0),
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "silu": lambda x: 0.5 * x * (1 + np.tanh(0.5 * x)),
}

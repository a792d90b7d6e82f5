"""Encoders of the runtime: students in NumPy, and ONNX graphs of all encoders."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hf_mwp.utils.usage_error import UsageError

from .weights import Weights


GRAPH = "encoder.onnx"
STUDENT = "mwp_student"
"""Type of the encoder that the runtime computes without a graph."""


class Encoder:
    """`MwpStudentModel` in NumPy for one text, with bottleneck networks after `bottleneck_layers` (from 1)."""

    def __init__(self, weights: Weights, config: Mapping[str, Any], bottleneck_layers=()) -> None:
        check_encoder(config)
        self.weights, self.config = weights, config
        self.words = weights.table("encoder.embeddings.word_embeddings.weight")
        self.positions = weights.table("encoder.embeddings.position_embeddings.weight")
        self.activation = ACTIVATIONS[config["hidden_act"]]
        self.epsilon = config["layer_norm_eps"]
        projects = config.get("embedding_size") is not None
        self.projection = weights.linear("encoder.embeddings_project") if projects else None
        self.embedding_norm = self._norm("encoder.embeddings.LayerNorm")
        self.segment = weights["encoder.embeddings.token_type_embeddings.weight"][:1]
        self.layers = [self._layer(index) for index in range(config["num_hidden_layers"])]
        self.bottlenecks = {layer: self._bottleneck(f"bottlenecks.{layer}") for layer in bottleneck_layers}

    def __call__(self, input_ids: np.ndarray) -> np.ndarray:
        """Compute the hidden states `(S, H)` of a text's tokens `(S,)`."""
        words = self.words.rows(input_ids)
        places = self.positions.rows(self._positions(input_ids))
        states = self._normalise(words + self.segment + places, self.embedding_norm)
        if self.projection is not None:
            states = states @ self.projection[0] + self.projection[1]
        for index, layer in enumerate(self.layers, 1):
            states = self._normalise(self._attend(states, layer) + states, layer["attention_norm"])
            states = self._normalise(self._feed_forward(states, layer) + states, layer["output_norm"])
            if index in self.bottlenecks:
                (reduce, bias), (expand, expand_bias) = self.bottlenecks[index]
                states = (states @ reduce + bias) @ expand + expand_bias
        return states

    def _positions(self, input_ids: np.ndarray) -> np.ndarray:
        offset = self.config["position_offset"]
        if not offset:
            return np.arange(len(input_ids))
        is_token = input_ids != self.config["pad_token_id"]
        return np.cumsum(is_token) * is_token + offset - 1

    def _attend(self, states: np.ndarray, layer: Mapping[str, Any]) -> np.ndarray:
        weight, bias = layer["attention_output"]
        if layer["heads"] == 0:
            return bias
        matrix, shift = layer["query_key_value"]
        split = (states @ matrix + shift).reshape(len(states), 3, layer["heads"], self.config["head_dim"])
        query, key, value = split.transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1)
        context = softmax(scores) @ value
        return context.transpose(1, 0, 2).reshape(len(states), -1) @ weight + bias

    def _feed_forward(self, states: np.ndarray, layer: Mapping[str, Any]) -> np.ndarray:
        weight, bias = layer["output"]
        if layer["neurons"] == 0:
            return bias
        matrix, shift = layer["intermediate"]
        return self.activation(states @ matrix + shift) @ weight + bias

    def _normalise(self, states: np.ndarray, norm: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        centred = states - states.mean(-1, keepdims=True)
        variance = np.einsum("sh,sh->s", centred, centred)[:, None] / states.shape[-1]
        centred /= np.sqrt(variance + self.epsilon)
        return centred * norm[0] + norm[1]

    def _norm(self, prefix: str) -> tuple[np.ndarray, np.ndarray]:
        return self.weights[f"{prefix}.weight"], self.weights[f"{prefix}.bias"]

    def _layer(self, index: int) -> dict[str, Any]:
        prefix = f"encoder.encoder.layer.{index}"
        heads, neurons = self.config["num_attention_heads"], self.config["intermediate_size"]
        layer: dict[str, Any] = {
            "heads": heads if isinstance(heads, int) else heads[index],
            "neurons": neurons if isinstance(neurons, int) else neurons[index],
            "attention_norm": self._norm(f"{prefix}.attention.output.LayerNorm"),
            "output_norm": self._norm(f"{prefix}.output.LayerNorm"),
            "attention_output": self._last(f"{prefix}.attention.output.dense"),
            "output": self._last(f"{prefix}.output.dense"),
        }
        if layer["heads"]:
            parts = [self.weights.linear(f"{prefix}.attention.self.{name}") for name in ("query", "key", "value")]
            scaling = self.config["head_dim"] ** -0.5
            parts[0] = (parts[0][0] * scaling, parts[0][1] * scaling)
            layer["query_key_value"] = tuple(np.concatenate(each, -1) for each in zip(*parts, strict=True))
        if layer["neurons"]:
            layer["intermediate"] = self.weights.linear(f"{prefix}.intermediate.dense")
        return layer

    def _last(self, prefix: str) -> tuple[np.ndarray | None, np.ndarray]:
        """Return matrix and bias of a sublayer's last linear layer; matrix is `None` if all its inputs are pruned."""
        if f"{prefix}.weight" in self.weights:
            return self.weights.linear(prefix)
        return None, self.weights[f"{prefix}.bias"]

    def _bottleneck(self, prefix: str) -> tuple[tuple, tuple]:
        expand = np.ascontiguousarray(self.weights[f"{prefix}.expand_weight"].T)
        return self.weights.linear(f"{prefix}.reduce"), (expand, self.weights[f"{prefix}.expand_bias"])


def check_encoder(config: Mapping[str, Any]) -> None:
    """Raise `UsageError` if [`Encoder`] does not support the type or the activation of an encoder."""
    kind, activation = config.get("model_type"), config.get("hidden_act")
    if kind != STUDENT or activation not in ACTIVATIONS:
        found = f"encoder of the type {kind} with the activation {activation}"
        raise UsageError(f"The runtime needs `hf-mwp export --format onnx` for an {found}.")


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
    widths = [shape[-1] for shape in shapes if shape and isinstance(shape[-1], int)]
    if inputs != ["input_ids"] or len(shapes) != 1 or widths not in ([], [width]):
        found = f"inputs {inputs} and outputs of the shapes {shapes}"
        raise UsageError(f"{path} has {found}, not tokens and states of width {width}. Export the solver again.")
    return lambda input_ids: session.run(None, {"input_ids": input_ids[None].astype(np.int64)})[0][0]


def softmax(scores: np.ndarray) -> np.ndarray:
    """Compute the softmax over the last axis, in place."""
    scores -= scores.max(-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(-1, keepdims=True)
    return scores


# Approximation of erf with an error below 1.5e-7 (Handbook of Mathematical Functions, 1964, formula 7.1.26).
_ERF = tuple(np.float32(value) for value in (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592))


def gelu(x: np.ndarray) -> np.ndarray:
    """Compute `x * Phi(x)` in float32 with an approximation, because NumPy has no error function."""
    scaled = np.abs(x)
    scaled *= np.float32(0.5**0.5)
    inverse = np.reciprocal(1 + np.float32(0.3275911) * scaled)
    tail = inverse * _ERF[0]
    for coefficient in _ERF[1:]:
        tail += coefficient
        tail *= inverse
    np.multiply(scaled, scaled, out=scaled)
    np.negative(scaled, out=scaled)
    # Half of 1 - erf, the probability beyond |x|.
    tail *= np.exp(scaled, out=scaled)
    tail *= np.float32(0.5)
    return np.where(x > 0, x - x * tail, x * tail)


def _tanh_gelu(x: np.ndarray) -> np.ndarray:
    return 0.5 * x * (1 + np.tanh(np.float32((2 / np.pi) ** 0.5) * (x + np.float32(0.044715) * x**3)))


ACTIVATIONS = {
    "gelu": gelu,
    "relu": lambda x: np.maximum(x, 0),
    "gelu_new": _tanh_gelu,
    "gelu_pytorch_tanh": _tanh_gelu,
    "silu": lambda x: 0.5 * x * (1 + np.tanh(0.5 * x)),
}

"""Layouts of the weights of causal language models: linear layers, the norms before them, and heads in their rows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class CausalSizes:
    """Sizes of a causal language model, by the names that most configs have."""

    hidden_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    intermediate_size: int

    @classmethod
    def of(cls, config: Any, layout: "CausalLayout") -> "CausalSizes":
        """Return the sizes in a config. Configs may leave out what follows from other sizes."""
        heads = config.num_attention_heads
        neurons = getattr(config, layout.neurons_field)
        return cls(
            config.hidden_size,
            heads,
            getattr(config, "num_key_value_heads", None) or heads,
            getattr(config, "head_dim", None) or config.hidden_size // heads,
            neurons or 4 * config.hidden_size,
        )


@dataclass(frozen=True)
class LayerUnits:
    """
    Heads and neurons of a layer that a student copies, and the rows and columns of the teacher's weights that belong
    to them.

    Args:
        sizes ([`CausalSizes`]): Sizes of the teacher.
        groups (`Tensor`), heads (`Tensor`), neurons (`Tensor`):
            Indices of key-value heads, query heads and neurons.
        features (`Tensor`), rotated (`Tensor`):
            Features of each head that values and that queries and keys have. They differ only if a student has a
            smaller `head_dim`, because rotary position embeddings rotate pairs of features.
    """

    sizes: CausalSizes
    groups: Tensor
    heads: Tensor
    neurons: Tensor
    features: Tensor
    rotated: Tensor

    @classmethod
    def all(cls, sizes: CausalSizes) -> "LayerUnits":
        """Return all units of a layer."""
        features = torch.arange(sizes.head_dim)
        groups = torch.arange(sizes.num_key_value_heads)
        heads = torch.arange(sizes.num_attention_heads)
        return cls(sizes, groups, heads, torch.arange(sizes.intermediate_size), features, features)

    @property
    def num_queries(self) -> int:
        """Number of rows of all the teacher's queries."""
        return self.sizes.num_attention_heads * self.sizes.head_dim

    @property
    def num_keys(self) -> int:
        """Number of rows of all the teacher's keys."""
        return self.sizes.num_key_value_heads * self.sizes.head_dim

    def query(self) -> Tensor:
        """Return the rows of queries."""
        return _rows(self.heads, self.sizes.head_dim, self.rotated)

    def key(self) -> Tensor:
        """Return the rows of keys."""
        return _rows(self.groups, self.sizes.head_dim, self.rotated)

    def value(self) -> Tensor:
        """Return the rows of values."""
        return _rows(self.groups, self.sizes.head_dim, self.features)

    def context(self) -> Tensor:
        """Return the columns of the output projection."""
        return _rows(self.heads, self.sizes.head_dim, self.features)

    def fused_value(self) -> Tensor:
        """Return the rows of values after all queries and keys."""
        return self.num_queries + self.num_keys + self.value()

    def fused(self) -> Tensor:
        """Return the rows of queries, keys and values, one after the other."""
        return torch.cat([self.query(), self.num_queries + self.key(), self.fused_value()])

    def interleaved_value(self) -> Tensor:
        """Return the rows of values if each head has its queries, keys and values together."""
        return _rows(self.heads, 3 * self.sizes.head_dim, 2 * self.sizes.head_dim + self.features)

    def interleaved(self) -> Tensor:
        """Return the rows of queries, keys and values if each head has its own together."""
        size = self.sizes.head_dim
        features = torch.cat([self.rotated, size + self.rotated, 2 * size + self.features])
        return _rows(self.heads, 3 * size, features)

    def neuron(self) -> Tensor:
        """Return the rows of neurons."""
        return self.neurons

    def gate_and_up(self) -> Tensor:
        """Return the rows of the gates of neurons, and after all gates of the neurons."""
        return torch.cat([self.neurons, self.fused_neuron()])

    def fused_neuron(self) -> Tensor:
        """Return the rows of neurons after all gates."""
        return self.sizes.intermediate_size + self.neurons

    def rotated_feature(self) -> Tensor:
        """Return the features of the queries and keys of a head."""
        return self.rotated


def _rows(heads: Tensor, rows_per_head: int, features: Tensor) -> Tensor:
    return (heads[:, None] * rows_per_head + features).flatten()


Rows = Callable[[LayerUnits], Tensor]


@dataclass(frozen=True)
class CausalLayout:
    """
    Names of the modules of one type of causal language models. Names of modules in layers are relative to the layer.

    Args:
        base (`str`): Name of the model without head.
        layers (`str`), final_norm (`str`), embeddings (`tuple[str, ...]`): Modules in the base model; the first
            embeddings are those of tokens.
        readers (`Mapping[str, Mapping[str, Rows]]`): For each norm of a layer the linear layers that read its output,
            with the rows of their units.
        writers (`Mapping[str, tuple[Rows, str | None]]`): The linear layers whose outputs are added to the hidden
            states, with the columns of their units and the norm of the output, if any.
        values (`tuple[str, Rows]`), contexts (`str`): The linear layer of values with their rows, and that which reads
            the contexts of heads.
        neurons (`tuple[str, Rows]`): The linear layer before the neurons, with their rows.
        down (`str`): The linear layer after the neurons.
        head_norms (`Mapping[str, Rows]`): Norms of the queries and keys of a head.
        neurons_field (`str`): Field of the config with the number of neurons.
        gain_offset (`float`): Number that a norm adds to its weight.
        scales_embeddings (`bool`): Whether embeddings are multiplied by the square root of the width.
        centres (`bool`): Whether the norms subtract the mean of the hidden states.
        rotates (`bool`): Whether queries and keys have rotary position embeddings.
        divides_width (`bool`): Whether the size of a head is the width divided by the number of heads.
    """

    readers: Mapping[str, Mapping[str, Rows]]
    writers: Mapping[str, tuple[Rows, str | None]]
    values: tuple[str, Rows]
    contexts: str
    neurons: tuple[str, Rows]
    down: str
    base: str = "model"
    layers: str = "layers"
    final_norm: str = "norm"
    embeddings: tuple[str, ...] = ("embed_tokens",)
    head_norms: Mapping[str, Rows] = field(default_factory=dict)
    neurons_field: str = "intermediate_size"
    gain_offset: float = 0.0
    scales_embeddings: bool = False
    centres: bool = False
    rotates: bool = True
    divides_width: bool = False

    def rotary_fraction(self, config: Any) -> float:
        """Return the share of the features of a head that are rotated."""
        if not self.rotates:
            return 0.0
        parameters = getattr(config, "rope_parameters", None) or {}
        return parameters.get("partial_rotary_factor", 1.0)


QUERY_KEY_VALUE = {
    "self_attn.q_proj": LayerUnits.query,
    "self_attn.k_proj": LayerUnits.key,
    "self_attn.v_proj": LayerUnits.value,
}
GATE_UP = {"mlp.gate_proj": LayerUnits.neuron, "mlp.up_proj": LayerUnits.neuron}
HEAD_NORMS = {"self_attn.q_norm": LayerUnits.rotated_feature, "self_attn.k_norm": LayerUnits.rotated_feature}
LLAMA = {
    "readers": {"input_layernorm": QUERY_KEY_VALUE, "post_attention_layernorm": GATE_UP},
    "writers": {"self_attn.o_proj": (LayerUnits.context, None), "mlp.down_proj": (LayerUnits.neuron, None)},
    "values": ("self_attn.v_proj", LayerUnits.value),
    "contexts": "self_attn.o_proj",
    "neurons": ("mlp.up_proj", LayerUnits.neuron),
    "down": "mlp.down_proj",
}
GEMMA = LLAMA | {
    "readers": {"input_layernorm": QUERY_KEY_VALUE, "pre_feedforward_layernorm": GATE_UP},
    "writers": {
        "self_attn.o_proj": (LayerUnits.context, "post_attention_layernorm"),
        "mlp.down_proj": (LayerUnits.neuron, "post_feedforward_layernorm"),
    },
    "gain_offset": 1.0,
    "scales_embeddings": True,
}
PHI3 = LLAMA | {
    "readers": {
        "input_layernorm": {"self_attn.qkv_proj": LayerUnits.fused},
        "post_attention_layernorm": {"mlp.gate_up_proj": LayerUnits.gate_and_up},
    },
    "values": ("self_attn.qkv_proj", LayerUnits.fused_value),
    "neurons": ("mlp.gate_up_proj", LayerUnits.fused_neuron),
}
# Layouts by the type of the config. A type with one of these layouts is one more entry.
LAYOUTS = {
    "llama": CausalLayout(**LLAMA),
    "mistral": CausalLayout(**LLAMA),
    "qwen2": CausalLayout(**LLAMA),
    "qwen3": CausalLayout(**LLAMA, head_norms=HEAD_NORMS),
    "gemma2": CausalLayout(**GEMMA),
    "gemma3_text": CausalLayout(**GEMMA, head_norms=HEAD_NORMS),
    "phi3": CausalLayout(**PHI3),
    "gpt2": CausalLayout(
        base="transformer",
        layers="h",
        final_norm="ln_f",
        embeddings=("wte", "wpe"),
        readers={"ln_1": {"attn.c_attn": LayerUnits.fused}, "ln_2": {"mlp.c_fc": LayerUnits.neuron}},
        writers={"attn.c_proj": (LayerUnits.context, None), "mlp.c_proj": (LayerUnits.neuron, None)},
        values=("attn.c_attn", LayerUnits.fused_value),
        contexts="attn.c_proj",
        neurons=("mlp.c_fc", LayerUnits.neuron),
        down="mlp.c_proj",
        neurons_field="n_inner",
        centres=True,
        rotates=False,
        divides_width=True,
    ),
    "gpt_neox": CausalLayout(
        base="gpt_neox",
        final_norm="final_layer_norm",
        embeddings=("embed_in",),
        readers={
            "input_layernorm": {"attention.query_key_value": LayerUnits.interleaved},
            "post_attention_layernorm": {"mlp.dense_h_to_4h": LayerUnits.neuron},
        },
        writers={"attention.dense": (LayerUnits.context, None), "mlp.dense_4h_to_h": (LayerUnits.neuron, None)},
        values=("attention.query_key_value", LayerUnits.interleaved_value),
        contexts="attention.dense",
        neurons=("mlp.dense_h_to_4h", LayerUnits.neuron),
        down="mlp.dense_4h_to_h",
        centres=True,
        divides_width=True,
    ),
}

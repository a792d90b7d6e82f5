"""Locations of layers, attention heads and neurons in encoders, encoder-decoder models and causal language models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from .layer_linears import PARTS, LayerParts


# Prefix of the `model_type` of pruned Transformers models, see `cut_model`.
CUT_PREFIX = "mwp_cut_"


@dataclass(frozen=True)
class Architecture:
    """Module names of an encoder or causal language model: its stack of layers, and the linear layers within each
    layer."""

    layers: str = "encoder.layer"  # a module list; `*` matches the index in a list of such lists
    # Projections of hidden states to the heads, head after head. Fused: all queries, then all keys, then all values.
    # With grouped queries, there are fewer keys and values, each for a group of consecutive queries.
    query: str | None = "attention.self.query"
    key: str | None = "attention.self.key"
    value: str | None = "attention.self.value"
    query_key_value: str | None = None
    is_interleaved: bool = False  # fused: query, key and value of the first head, then those of the second, ...
    # Projections of relative positions to the heads, head after head; some models of the type lack them.
    position_key: str | None = None
    position_query: str | None = None
    attention_output: str = "attention.output.dense"  # projection of the heads' contexts, head after head
    # First feed-forward layer. A neuron is one output, or one in each half if the second half computes gates.
    intermediate: str | None = "intermediate.dense"
    gate: str | None = None  # separate linear layer, whose outputs multiply the outputs of `intermediate`
    output: str | None = "output.dense"
    attention: str | None = None  # attention module that must be changed with its number of heads
    # Attributes of `attention` that depend on its heads, with the properties of [`LayerParts`] that they are equal to.
    attention_sizes: tuple[tuple[str, str], ...] = ()
    reads_config: bool = False  # `attention` reads the number of heads from its config in each forward pass
    is_causal: bool = False  # `attention` sees only earlier tokens, whose keys and values it caches in generation
    biased_attention: str | None = None  # its third argument is a bias for each head, shared by all layers
    lora_targets: tuple[str, ...] = ("query", "value")  # linear layers that get LoRA adapters by default
    heads: str = "num_attention_heads"  # config field with the number of heads
    neurons: str = "intermediate_size"  # config field with the number of neurons
    attentions: str = "attentions"  # attention matrices in the model's output
    # Further stacks, numbered after this one: the decoder's self-attention with neurons, then its cross-attention.
    others: tuple[Architecture, ...] = ()

    def part_of(self, name: str) -> str | None:
        """Return the field, such as `"query"`, that names a module of the encoder, or `None`."""
        pattern = re.escape(self.layers).replace(r"\*", r"\d+")
        match = re.fullmatch(rf"{pattern}\.\d+\.(.+)", name)
        if match:
            for field in PARTS:
                if getattr(self, field) == match[1]:
                    return field
        for stack in self.others:
            field = stack.part_of(name)
            if field is not None:
                return field
        return None

    def stack(self, encoder: nn.Module) -> list[nn.Module]:
        """Return the layers of an encoder. Layers that share their weights are returned once."""
        outer, _, inner = self.layers.partition(".*.")
        groups = encoder.get_submodule(outer)
        if not inner:
            return list(groups)
        layers = []
        for group in groups:
            layers += group.get_submodule(inner)
        return layers


def _attention(pattern: str, names: Sequence[str] = "qkv") -> dict[str, str]:
    """Return the names of query, key and value projections that follow a pattern."""
    return dict(zip(("query", "key", "value"), map(pattern.format, names), strict=True))


_OWN_SIZES = (("num_attention_heads", "num_heads"), ("all_head_size", "context_size"))

_BART = Architecture(
    layers="encoder.layers",
    **_attention("self_attn.{}_proj"),
    attention_output="self_attn.out_proj",
    intermediate="fc1",
    output="fc2",
    heads="encoder_attention_heads",
    attentions="encoder_attentions",
)
_BART_DECODER = replace(
    _BART,
    layers="decoder.layers",
    heads="decoder_attention_heads",
    attentions="decoder_attentions",
    attention="self_attn",
    is_causal=True,
)
_BART_CROSS = replace(
    _BART_DECODER,
    attentions="cross_attentions",
    **_attention("encoder_attn.{}_proj"),
    attention=None,
    attention_output="encoder_attn.out_proj",
    intermediate=None,
    output=None,
)

_LLAMA = Architecture(
    layers="layers",
    **_attention("self_attn.{}_proj"),
    attention_output="self_attn.o_proj",
    intermediate="mlp.up_proj",
    gate="mlp.gate_proj",
    output="mlp.down_proj",
    attention="self_attn",
    attention_sizes=(("num_key_value_groups", "queries_per_group"),),
    is_causal=True,
)
_FUSED = {**dict.fromkeys(("query", "key", "value")), "lora_targets": ("query_key_value",)}

ARCHITECTURES = {
    **dict.fromkeys(("bert", "roberta", "xlm-roberta", "camembert", "electra", "mwp_student"), Architecture()),
    "distilbert": Architecture(
        layers="transformer.layer",
        **_attention("attention.{}_lin"),
        attention_output="attention.out_lin",
        intermediate="ffn.lin1",
        output="ffn.lin2",
    ),
    "albert": Architecture(
        layers="encoder.albert_layer_groups.*.albert_layers",
        **_attention("attention.{}", ("query", "key", "value")),
        attention_output="attention.dense",
        intermediate="ffn",
        output="ffn_output",
    ),
    "deberta-v2": Architecture(
        **_attention("attention.self.{}_proj", ("query", "key", "value")),
        position_key="attention.self.pos_key_proj",
        position_query="attention.self.pos_query_proj",
        attention="attention.self",
        attention_sizes=_OWN_SIZES,
    ),
    "modernbert": Architecture(
        layers="layers",
        **dict.fromkeys(("query", "key", "value")),
        query_key_value="attn.Wqkv",
        attention_output="attn.Wo",
        intermediate="mlp.Wi",
        output="mlp.Wo",
        lora_targets=("query_key_value",),
    ),
    "mpnet": Architecture(
        **_attention("attention.attn.{}"),
        attention_output="attention.attn.o",
        attention="attention.attn",
        attention_sizes=_OWN_SIZES,
        biased_attention="attention.attn",
    ),
    "nomic_bert": Architecture(
        layers="layers",
        **_attention("self_attn.{}_proj"),
        attention_output="self_attn.o_proj",
        intermediate="mlp.up_proj",
        gate="mlp.gate_proj",
        output="mlp.down_proj",
    ),
    **dict.fromkeys(
        ("bart", "mbart", "marian", "pegasus", "m2m_100"), replace(_BART, others=(_BART_DECODER, _BART_CROSS))
    ),
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text"), _LLAMA),
    "phi3": replace(
        _LLAMA,
        **_FUSED,
        query_key_value="self_attn.qkv_proj",
        intermediate="mlp.gate_up_proj",
        gate=None,
        attention_sizes=(*_LLAMA.attention_sizes, ("num_key_value_heads", "num_groups")),
        reads_config=True,
    ),
    "gpt2": Architecture(
        layers="h",
        **_FUSED,
        query_key_value="attn.c_attn",
        attention_output="attn.c_proj",
        intermediate="mlp.c_fc",
        output="mlp.c_proj",
        neurons="n_inner",
        attention="attn",
        attention_sizes=(("num_heads", "num_heads"), ("split_size", "context_size")),
        is_causal=True,
    ),
    "gpt_neox": Architecture(
        layers="layers",
        **_FUSED,
        query_key_value="attention.query_key_value",
        is_interleaved=True,
        attention_output="attention.dense",
        intermediate="mlp.dense_h_to_4h",
        output="mlp.dense_4h_to_h",
        attention="attention",
        is_causal=True,
    ),
}
"""Supported encoders, encoder-decoder models and causal language models by `config.model_type`. To support a new type,
add an entry."""


def find_architecture(config: PreTrainedConfig) -> Architecture | None:
    """Return the [`ARCHITECTURES`] entry for a model's config, or `None` if the type is not supported."""
    return ARCHITECTURES.get(str(getattr(config, "model_type", None)).removeprefix(CUT_PREFIX))


def find_encoder(model: nn.Module) -> PreTrainedModel:
    """Return the encoder, or the stack of layers of a causal language model, within a model. Raises `ValueError` if
    none has a type in [`ARCHITECTURES`]."""
    model_types = []
    for module in model.modules():
        if not isinstance(module, PreTrainedModel):
            continue
        model_types.append(str(getattr(module.config, "model_type", None)))
        architecture = find_architecture(module.config)
        # BERT, RoBERTa or GPT-2 as the decoder of another encoder: its cross-attention is not known here.
        if architecture is None or getattr(module.config, "is_decoder", False):
            continue
        # The encoder alone of an encoder-decoder model lacks the decoder's layer stacks.
        stacks = (architecture, *architecture.others)
        if all(hasattr(module.base_model, stack.layers.partition(".")[0]) for stack in stacks):
            return module.base_model
    table = "hf_mwp.compress.models.architecture.ARCHITECTURES"
    hint = f"To support a new type, add the names of its linear layers to `{table}`."
    if "t5" in model_types:
        hint = "T5 layers share one bias over relative positions, so heads cannot be pruned in single layers."
    types = ", ".join(dict.fromkeys(model_types)) or "no pretrained model"
    raise ValueError(
        f"{type(model).__name__} ({types}) has no supported encoder. "
        f"Supported model types: {', '.join(ARCHITECTURES)}. {hint}"
    )


def layer_parts(model: nn.Module) -> list[LayerParts]:
    """Return the linear layers of the encoder within a model, layer by layer, then those of `Architecture.others`.
    Raises the errors of [`find_encoder`] and [`LayerParts`]."""
    encoder = find_encoder(model)
    config = encoder.config
    architecture = find_architecture(config)
    layers = []
    for stack in (architecture, *architecture.others):
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // getattr(config, stack.heads)
        for index, layer in enumerate(stack.stack(encoder)):
            layers.append(LayerParts(layer, stack, head_dim, index))
    return layers


def count_units(model: nn.Module) -> tuple[list[int], list[int]]:
    """Return the numbers of heads and of neurons in each layer of a model's encoder."""
    layers = layer_parts(model)
    return [linears.num_heads for linears in layers], [linears.num_neurons for linears in layers]


def layer_order(model: nn.Module) -> list[int]:
    """Return the index in [`layer_parts`] of each computed layer. Layers that share weights (ALBERT) share it."""
    encoder = find_encoder(model)
    num_layers = len(layer_parts(encoder))
    num_groups = getattr(encoder.config, "num_hidden_groups", None)
    if num_groups is None:
        return list(range(num_layers))
    layers_per_group = num_layers // num_groups
    # Each step computes all layers of one group; consecutive steps repeat the same group.
    num_steps = encoder.config.num_hidden_layers
    steps_per_group = num_steps / num_groups
    order = []
    for step in range(num_steps):
        first = int(step / steps_per_group) * layers_per_group
        order += range(first, first + layers_per_group)
    return order


def cut_heads(model: nn.Module) -> list[list[int]]:
    """Return the pruned heads of each layer from the encoder's config, by their original indices."""
    pruned = getattr(find_encoder(model).config, "cut_heads", None)
    num_layers = len(layer_parts(model))
    if not pruned or len(pruned) != num_layers:
        return [[] for _ in range(num_layers)]
    return [list(heads) for heads in pruned]


def count_positions(config: PreTrainedConfig) -> int | None:
    """Return the maximum number of tokens of an encoder, or `None` if it has none (no field, or -1). RoBERTa and MPNet
    count positions from the padding token."""
    positions = getattr(config, "max_position_embeddings", None)
    if positions is None or positions < 0:
        return None
    offset = getattr(config, "position_offset", 0)
    if "roberta" in config.model_type or config.model_type == "camembert":
        offset = config.pad_token_id + 1
    elif "mpnet" in config.model_type:
        # The padding token of MPNet is always 1, even if the config has a different value.
        offset = 2
    return positions - offset

"""Where encoders keep their layers, attention heads and neurons."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn
from transformers import PreTrainedModel


PARTS = ("query", "key", "value", "attention_output", "intermediate", "output")


@dataclass(frozen=True)
class Architecture:
    """
    Names of modules: of the stack of layers within an encoder, and within a layer of its linear layers.

    Args:
        layers (`str`): The `nn.ModuleList` of the layers.
        query, key, value (`str`): Projections of the states to the heads, head after head.
        attention_output (`str`): Projection of the heads' contexts, head after head, to the states.
        intermediate (`str`): First linear layer of the feed-forward network; a neuron is one of its outputs.
        output (`str`): Second linear layer of the feed-forward network.
        lora_targets (`tuple[str, ...]`): Which of these linear layers get LoRA adapters unless others are named.
    """

    layers: str = "encoder.layer"
    query: str = "attention.self.query"
    key: str = "attention.self.key"
    value: str = "attention.self.value"
    attention_output: str = "attention.output.dense"
    intermediate: str = "intermediate.dense"
    output: str = "output.dense"
    lora_targets: tuple[str, ...] = ("query", "value")

    def part_of(self, name: str) -> str | None:
        """Which linear layer of a layer a module of the encoder is, by its name; `None` if it is none of them."""
        if not name.startswith(f"{self.layers}."):
            return None
        _, _, inside = name.removeprefix(f"{self.layers}.").partition(".")
        return next((part for part in PARTS if getattr(self, part) == inside), None)


_BERT = Architecture()

ARCHITECTURES = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "camembert": _BERT,
    "electra": _BERT,
    "mwp_student": _BERT,
    "distilbert": Architecture(
        layers="transformer.layer",
        query="attention.q_lin",
        key="attention.k_lin",
        value="attention.v_lin",
        attention_output="attention.out_lin",
        intermediate="ffn.lin1",
        output="ffn.lin2",
    ),
}
"""Encoders by their `config.model_type`. A new one is one entry."""


@dataclass(frozen=True)
class LayerParts:
    """
    The linear layers of one encoder layer; `None` where all heads or all neurons were cut away.

    Args:
        head_dim (`int`): Width of a head.
        query, key, value, intermediate (`nn.Linear`, *optional*): Of shape `(outputs, width)`.
        attention_output, output (`nn.Linear`, *optional*): Of shape `(width, inputs)`.
    """

    head_dim: int
    query: nn.Linear | None
    key: nn.Linear | None
    value: nn.Linear | None
    attention_output: nn.Linear | None
    intermediate: nn.Linear | None
    output: nn.Linear | None

    @property
    def num_heads(self) -> int:
        """Heads that are there."""
        return 0 if self.query is None else self.query.out_features // self.head_dim

    @property
    def num_neurons(self) -> int:
        """Neurons that are there."""
        return 0 if self.intermediate is None else self.intermediate.out_features


def find_encoder(model: nn.Module) -> PreTrainedModel:
    """
    The encoder within a model: the model itself, what its head stands on, or that of a solver.

    Args:
        model (`nn.Module`): Alone, with a head, or composed of several models.

    Raises:
        ValueError: none of its parts is of a type in [`ARCHITECTURES`].
    """
    types = []
    for part in model.modules():
        if not isinstance(part, PreTrainedModel):
            continue
        kind = getattr(part.config, "model_type", None)
        if kind in ARCHITECTURES and not getattr(part.config, "is_decoder", False):
            return part.base_model
        types.append(str(kind))
    hint = (
        " Its heads share one bias over relative positions, which cutting heads would have to cut in all layers."
        if "t5" in types
        else " Another encoder is one entry of `hf_mwp.models.architecture.ARCHITECTURES`: its linear layers' names."
    )
    kinds = ", ".join(dict.fromkeys(types)) or "no pretrained model"
    raise ValueError(
        f"{type(model).__name__} ({kinds}) has no encoder whose heads and neurons are known; these are: "
        f"{', '.join(ARCHITECTURES)}.{hint}"
    )


def layer_parts(model: nn.Module) -> list[LayerParts]:
    """
    The linear layers of the encoder within a model, layer by layer.

    Raises:
        ValueError: an encoder of an unknown type, or one whose linear layers are wrapped (adapters, quantisation).
    """
    encoder = find_encoder(model)
    config, names = encoder.config, ARCHITECTURES[encoder.config.model_type]
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    found = []
    for index, layer in enumerate(encoder.get_submodule(names.layers)):
        parts = {name: _linear(layer, getattr(names, name), index) for name in PARTS}
        found.append(LayerParts(head_dim, **parts))
    return found


def cut_heads(model: nn.Module) -> list[list[int]]:
    """By layer, the heads that the config of a model's encoder says were cut, counted as before the first of them."""
    encoder = find_encoder(model)
    noted, layers = getattr(encoder.config, "cut_heads", None), len(layer_parts(model))
    return [list(heads) for heads in noted] if noted and len(noted) == layers else [[] for _ in range(layers)]


def _linear(layer: nn.Module, name: str, index: int) -> nn.Linear | None:
    module = layer
    for step in name.split("."):
        module = getattr(module, step)
        if module is None:
            return None
    if type(module) is nn.Linear:
        return module
    if list(module.parameters(recurse=False)) and not hasattr(module, "weight"):
        # The bias that is left of a sublayer.
        return None
    raise ValueError(
        f"{name} of layer {index} is a {type(module).__name__}, not a plain linear layer: merge adapters "
        "(`hf_mwp.merge_lora(model)`, or `merge_and_unload()` of a model of peft) and undo quantisation first."
    )


__all__ = ["ARCHITECTURES", "Architecture", "LayerParts", "cut_heads", "find_encoder", "layer_parts"]

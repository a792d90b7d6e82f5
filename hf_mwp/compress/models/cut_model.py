"""
Removal of heads and neurons from a model in memory, and models of Transformers without some heads and neurons.

For each class of Transformers, this module creates a class on first use: `CutModernBertModel` is a `ModernBertModel`
without the heads and neurons that its config lists as pruned. Saved folders contain this file and those it imports.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import torch
import transformers
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from transformers import Cache, PreTrainedConfig, PreTrainedModel
from transformers.pytorch_utils import Conv1D

from .architecture import CUT_PREFIX, cut_heads, find_architecture, layer_parts
from .layer_linears import LayerParts, out_size, output_dim


# Auto classes that load pruned models, if Transformers has a class for the encoder.
AUTO_CLASSES = (
    "AutoModel",
    "AutoModelForMaskedLM",
    "AutoModelForCausalLM",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
    "AutoModelForQuestionAnswering",
    "AutoModelForMultipleChoice",
)


class NoHeads(nn.Module):
    """Attention layer without heads, which returns contexts of width 0. It replaces layers that fail without heads."""

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        batch, length, _ = hidden_states.shape
        return hidden_states.new_empty(batch, length, 0), hidden_states.new_empty(batch, 0, length, length)


class EmptyConv1D(Conv1D):
    """Linear layer of GPT-2 without inputs, which returns its bias."""

    def forward(self, x: Tensor) -> Tensor:
        return self.bias.expand(*x.shape[:-1], -1)


class Headless:
    """Mixin, listed before the class of a causal attention layer that lost all its heads but keeps its output
    projection (`output_name`), and thereby the projection's bias."""

    output_name: str

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        batch, length, _ = hidden_states.shape
        for argument in (*args, *kwargs.values()):
            if isinstance(argument, Cache):
                # Models count the tokens in the cache of a layer, which are none if its keys are empty.
                layer_cache = getattr(argument, "self_attention_cache", argument)
                placeholder = hidden_states.new_zeros(batch, 1, length, 1)
                layer_cache.update(placeholder, placeholder, self.layer_idx)
        output = torch.zeros_like(hidden_states)
        bias = self.get_submodule(self.output_name).bias
        if bias is not None:
            output = output + bias
        return output, hidden_states.new_empty(batch, 0, length, length)


@cache
def headless_class(attention_class, output_name):
    """Return the counterpart without heads of an attention class, which Transformers recognises as that class."""
    body = {"__module__": __name__, "output_name": output_name}
    return type(f"Headless{attention_class.__name__}", (Headless, attention_class), body)


class LayerConfig:
    """View of a model's config for one attention layer that reads its number of heads from the config."""

    def __init__(self, config: PreTrainedConfig, num_attention_heads: int) -> None:
        self.model_config = config
        self.num_attention_heads = num_attention_heads

    def __getattr__(self, name: str) -> Any:
        # Copying and pickling ask for special methods before there is a config.
        if name == "model_config" or name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.model_config, name)


def slice_heads(parts: LayerParts, kept: Sequence[int], optimizer: torch.optim.Optimizer | None = None) -> None:
    """Keep only the given heads of a layer, and the key-value groups that they need. Its parameters, their gradients
    and optimiser states are sliced. Raises the errors of [`LayerParts.check_remaining`]."""
    if not parts.num_heads:
        return
    parts.check_remaining(kept)
    context_columns = parts.query_rows(kept)
    for linear, rows in parts.head_rows(kept):
        _slice_outputs(linear, rows, optimizer)
    _slice_inputs(parts.attention_output, context_columns, optimizer)
    update_head_count(parts)


def slice_neurons(parts: LayerParts, kept: Sequence[int]) -> None:
    """Keep only the given neurons of a layer; see [`slice_heads`]."""
    num_neurons = parts.num_neurons
    if not num_neurons:
        return
    columns = torch.tensor([*kept], dtype=torch.long)
    for linear in parts.neuron_projections:
        # The second half of a layer may compute the gates of the neurons.
        rows = torch.arange(out_size(linear)).view(-1, num_neurons)[:, columns].flatten()
        _slice_outputs(linear, rows)
    _slice_inputs(parts.output, columns)


def update_head_count(parts: LayerParts) -> None:
    """Update an attention module that stores or reads its number of heads, or that fails without heads."""
    architecture = parts.architecture
    path = architecture.attention
    if path is None:
        return
    output_name = architecture.attention_output.removeprefix(f"{path}.")
    if not parts.num_heads and output_name == architecture.attention_output:
        parts.layer.set_submodule(path, NoHeads())
        return
    attention = parts.layer.get_submodule(path)
    for attribute, size in architecture.attention_sizes:
        setattr(attention, attribute, getattr(parts, size))
    if architecture.reads_config:
        model_config = getattr(attention.config, "model_config", attention.config)
        attention.config = LayerConfig(model_config, parts.num_heads)
    if architecture.is_causal and not parts.num_heads and not isinstance(attention, Headless):
        attention.__class__ = headless_class(type(attention), output_name)
        # Distributed training waits for the gradient of each trainable parameter.
        bias = attention.get_submodule(output_name).bias
        for parameter in attention.parameters():
            parameter.requires_grad_(parameter.requires_grad and parameter is bias)


def slice_position_bias(model: nn.Module) -> None:
    """Pass to each layer only its remaining heads of the relative position bias that all layers share (MPNet)."""
    for linears, pruned in zip(layer_parts(model), cut_heads(model), strict=True):
        if linears.architecture.biased_attention is None:
            continue
        attention = linears.layer.get_submodule(linears.architecture.biased_attention)
        if not hasattr(attention, "biased_heads"):
            attention.register_forward_pre_hook(_take_bias)
        num_heads = linears.num_heads + len(pruned)
        attention.biased_heads = [head for head in range(num_heads) if head not in pruned]


def _take_bias(attention: nn.Module, args: tuple) -> tuple:
    states, mask, bias, *rest = args
    if bias.shape[1] != len(attention.biased_heads):
        # Indexing with a list would wait for its copy to the device.
        head_biases = [bias.narrow(1, head, 1) for head in attention.biased_heads]
        bias = torch.cat([bias[:, :0], *head_biases], 1)
    return states, mask, bias, *rest


def resize_heads(model: nn.Module, state_dict: Mapping[str, Tensor], *rest: Any) -> None:
    """Resize attention layers to the shapes in a state dict; for `register_load_state_dict_pre_hook`."""
    names = {module: name for name, module in model.named_modules()}
    for linears in layer_parts(model):
        for linear in filter(None, (*linears.head_projections, linears.attention_output)):
            weight = state_dict.get(f"{names[linear]}.weight")
            # The other dimension is the encoder's width. If it differs, loading the state dict must fail.
            width_dim = output_dim(linear)
            if linear is not linears.attention_output:
                width_dim = 1 - width_dim
            if weight is None or weight.shape[width_dim] != linear.weight.shape[width_dim]:
                continue
            linear.weight.data = linear.weight.new_zeros(weight.shape)
            if linear.bias is not None:
                linear.bias.data = linear.bias.new_zeros(out_size(linear))
            _update_sizes(linear)
        update_head_count(linears)


def _slice_outputs(linear: nn.Module, rows: Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Keep only some outputs of a linear layer."""
    _slice(linear.weight, output_dim(linear), rows, optimizer)
    if linear.bias is not None:
        _slice(linear.bias, 0, rows, optimizer)
    _update_sizes(linear)


def _slice_inputs(linear: nn.Module, columns: Tensor, optimizer: torch.optim.Optimizer | None = None) -> None:
    """Keep only some inputs of a linear layer."""
    _slice(linear.weight, 1 - output_dim(linear), columns, optimizer)
    _update_sizes(linear)


def _update_sizes(linear: nn.Module) -> None:
    """Update the sizes that a linear layer stores to those of its weight."""
    if isinstance(linear, Conv1D):
        linear.nx, linear.nf = linear.weight.shape
        if not linear.nx:
            linear.__class__ = EmptyConv1D
            linear.weight.requires_grad_(False)
    else:
        linear.out_features, linear.in_features = linear.weight.shape


def _slice(parameter: nn.Parameter, dim: int, index: Tensor, optimizer: torch.optim.Optimizer | None) -> None:
    index = index.to(parameter.device)
    full_shape = parameter.shape
    gradient = parameter.grad
    parameter.grad = None
    parameter.data = parameter.data.index_select(dim, index)
    if gradient is not None:
        parameter.grad = gradient.index_select(dim, index)
    if optimizer is None:
        return
    state = optimizer.state.get(parameter, {})
    for name, value in state.items():
        # Slice the averages of the gradient and its square, but not the step count.
        if isinstance(value, Tensor) and value.shape == full_shape:
            state[name] = value.index_select(dim, index)


@strict
class CutConfig(PreTrainedConfig):
    """Config fields of models with pruned heads or neurons: the pruned heads of each layer, by their original indices,
    and the number of remaining neurons. Layers are those of [`~models.architecture.layer_parts`]."""

    cut_heads: list[list[int]] | None = None
    neurons_per_layer: list[int] | None = None

    # The code is saved too, so that `trust_remote_code=True` loads the model if hf_mwp is not installed.
    _auto_class = "AutoConfig"

    def __post_init__(self, **kwargs):
        # These fields describe the folder, not the model, and are written by each save.
        kwargs.pop("auto_map", None)
        kwargs.pop("stock_config", None)
        super().__post_init__(**kwargs)
        _register_models(type(self))

    def save_pretrained(self, save_directory, **kwargs):
        """Save the config as `PreTrainedConfig` does, with the code of the models."""
        self.auto_map = {}
        auto_classes = {}
        for auto_class, model_class in _models(type(self)).items():
            self.auto_map[auto_class] = f"cut_model.{model_class.__name__}"
            auto_classes[model_class.__name__] = auto_class
        # Because of this field, a class of Transformers says in its error what to load the folder with; see
        # `mwp_student.remote_code.refuse_class`.
        name = (self.architectures or ["pruned model"])[0]
        sentence = (
            f"This folder contains a {name}, which was pruned. Load it with "
            f"{auto_classes.get(name, 'AutoModel')}.from_pretrained, after `import hf_mwp` or with "
            "trust_remote_code=True."
        )
        self.stock_config = {"model_type": self.model_type.removeprefix(CUT_PREFIX), "vocab_size": sentence}
        try:
            super().save_pretrained(save_directory, **kwargs)
        finally:
            del self.auto_map, self.stock_config

    @property
    def heads_per_layer(self) -> list[int]:
        """Number of remaining attention heads in each layer."""
        pruned_heads = self.cut_heads or [[]] * len(self.neurons_per_layer or ())
        heads_per_layer = []
        for layer, pruned in enumerate(pruned_heads):
            num_heads = self.num_attention_heads
            if self.is_encoder_decoder and layer >= self.encoder_layers:
                num_heads = self.decoder_attention_heads
            heads_per_layer.append(num_heads - len(pruned))
        return heads_per_layer


class CutModel:
    """Mixin, listed before a class of Transformers, that builds the model without its pruned heads and neurons."""

    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        if self.base_model is not self and isinstance(self.base_model, CutModel):
            # Some classifiers create their base model with `AutoModel`, which has pruned it.
            return
        layers = layer_parts(self)
        pruned_heads = config.cut_heads or [[]] * len(layers)
        neurons_per_layer = config.neurons_per_layer or [linears.num_neurons for linears in layers]
        for linears, pruned, num_neurons in zip(layers, pruned_heads, neurons_per_layer, strict=True):
            remaining = [head for head in range(linears.num_heads) if head not in pruned]
            slice_heads(linears, remaining)
            slice_neurons(linears, range(num_neurons))
        slice_position_bias(self)

    def save_pretrained(self, save_directory, *args, **kwargs):
        """Save the model as `PreTrainedModel` does; the umask decides who may read the weights."""
        super().save_pretrained(save_directory, *args, **kwargs)
        config = Path(save_directory) / "config.json"
        if config.is_file():
            for path in config.parent.glob("*.safetensors"):
                path.chmod(config.stat().st_mode)


@cache
def cut_class(stock):
    """Return the pruned counterpart of a config or model class of Transformers."""
    body = {"__module__": __name__, "__doc__": f"[`{stock.__name__}`] without some attention heads and neurons."}
    if issubclass(stock, PreTrainedConfig):
        body["model_type"] = CUT_PREFIX + stock.model_type
        return strict(type(f"Cut{stock.__name__}", (CutConfig, stock), body))
    body["config_class"] = cut_class(stock.config_class)
    return type(f"Cut{stock.__name__}", (CutModel, stock), body)


def stock_class(model_or_config_class):
    """Return the class of Transformers that a class is, or that it is derived from."""
    return next(base for base in model_or_config_class.__mro__ if base.__module__.startswith("transformers."))


def stock_models(config_class):
    """Return the model classes of Transformers for a config class, by the name of the Auto class that loads them."""
    models = {}
    architecture = find_architecture(config_class)
    for auto_class in AUTO_CLASSES:
        if auto_class == "AutoModelForCausalLM" and (architecture is None or not architecture.is_causal):
            # The decoder of an encoder-decoder model alone, or an encoder with another mask.
            continue
        model_class = getattr(transformers, auto_class)._model_mapping.get(config_class, None)
        if isinstance(model_class, type):
            models[auto_class] = model_class
    return models


def _models(cut_config_class):
    stock = stock_class(cut_config_class)
    return {auto_class: cut_class(model) for auto_class, model in stock_models(stock).items()}


@cache
def _register_models(cut_config_class):
    # Called late, because it imports the models of Transformers.
    for auto_class, model_class in _models(cut_config_class).items():
        getattr(transformers, auto_class).register(cut_config_class, model_class)


def __getattr__(name):
    if name.startswith("Cut"):
        stock = getattr(transformers, name.removeprefix("Cut"), None)
        if isinstance(stock, type) and issubclass(stock, (PreTrainedConfig, PreTrainedModel)):
            return cut_class(stock)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""
Models of Transformers with pruned attention heads and neurons, which can be saved and loaded.

For each class of Transformers, this module creates a class whose name begins with `Cut` on first use:
`CutModernBertModel` is a `ModernBertModel` without the heads and neurons that its `CutModernBertConfig` lists as
pruned. Saved folders contain this file and the files that it imports.
"""

from functools import cache

import transformers
from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig, PreTrainedModel

from .architecture import CUT_PREFIX, layer_parts
from .slicing import share_bias, slice_heads, slice_neurons


# Auto classes that load pruned models, if Transformers has a class for the encoder.
AUTO_CLASSES = (
    "AutoModel",
    "AutoModelForMaskedLM",
    "AutoModelForSeq2SeqLM",
    "AutoModelForSequenceClassification",
    "AutoModelForTokenClassification",
    "AutoModelForQuestionAnswering",
    "AutoModelForMultipleChoice",
)


@strict
class CutConfig(PreTrainedConfig):
    """
    Config fields of models with pruned heads or neurons, in addition to the fields of the original config.

    Args:
        cut_heads (`list[list[int]]`, *optional*):
            Pruned attention heads of each layer, by their original indices; layers that share weights are listed once.
            An encoder-decoder model has its encoder layers first, then the self-attentions of its decoder layers,
            then their cross-attentions, which have no neurons.
        neurons_per_layer (`list[int]`, *optional*): Number of remaining feed-forward neurons in each layer.
    """

    cut_heads: list[list[int]] | None = None
    neurons_per_layer: list[int] | None = None

    # The code is saved too, so that `trust_remote_code=True` loads the model if hf_mwp is not installed.
    _auto_class = "AutoConfig"

    def __post_init__(self, **kwargs):
        # `auto_map` describes the folder, not the model, and is written by each save.
        kwargs.pop("auto_map", None)
        super().__post_init__(**kwargs)
        _register_models(type(self))

    def save_pretrained(self, save_directory, **kwargs):
        """Save the config as `PreTrainedConfig` does, with the code of the models."""
        self.auto_map = {name: f"cut_model.{each.__name__}" for name, each in _models(type(self)).items()}
        try:
            super().save_pretrained(save_directory, **kwargs)
        finally:
            del self.auto_map

    @property
    def heads_per_layer(self) -> list[int]:
        """Number of remaining attention heads in each layer."""
        cut_heads = self.cut_heads or [[] for _ in self.neurons_per_layer or ()]
        heads = [self.num_attention_heads] * len(cut_heads)
        if self.is_encoder_decoder:
            heads[self.encoder_layers :] = [self.decoder_attention_heads] * (len(cut_heads) - self.encoder_layers)
        return [count - len(cut) for count, cut in zip(heads, cut_heads, strict=True)]


class CutModel:
    """Mixin, listed before a class of Transformers, that builds the model without its pruned heads and neurons."""

    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        parts = layer_parts(self)
        cut_heads = config.cut_heads or [[] for _ in parts]
        neurons = config.neurons_per_layer or [each.num_neurons for each in parts]
        for each, cut, count in zip(parts, cut_heads, neurons, strict=True):
            slice_heads(each, [head for head in range(each.num_heads) if head not in cut])
            slice_neurons(each, range(count))
        share_bias(self)


@cache
def cut_class(stock):
    """Return the pruned counterpart of a config or model class of Transformers."""
    body = {"__module__": __name__, "__doc__": f"[`{stock.__name__}`] without some attention heads and neurons."}
    if issubclass(stock, PreTrainedConfig):
        body["model_type"] = CUT_PREFIX + stock.model_type
        return strict(type(f"Cut{stock.__name__}", (CutConfig, stock), body))
    body["config_class"] = cut_class(stock.config_class)
    return type(f"Cut{stock.__name__}", (CutModel, stock), body)


def stock_class(cut):
    """Return the class of Transformers that a class of this module derives from."""
    return next(each for each in cut.__mro__ if each.__module__.startswith("transformers."))


def stock_models(config_class):
    """Return the model classes of Transformers for a config class, by the name of the Auto class that loads them."""
    found = {name: getattr(transformers, name)._model_mapping.get(config_class, None) for name in AUTO_CLASSES}
    return {name: model for name, model in found.items() if isinstance(model, type)}


def _models(cut_config_class):
    stock = stock_models(stock_class(cut_config_class))
    return {name: cut_class(model) for name, model in stock.items()}


@cache
def _register_models(cut_config_class):
    # Called late, because it imports the models of Transformers.
    for name, model_class in _models(cut_config_class).items():
        getattr(transformers, name).register(cut_config_class, model_class)


def __getattr__(name):
    stock = getattr(transformers, name.removeprefix("Cut"), None) if name.startswith("Cut") else None
    if isinstance(stock, type) and issubclass(stock, (PreTrainedConfig, PreTrainedModel)):
        return cut_class(stock)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

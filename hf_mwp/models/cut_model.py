"""
Encoders of Transformers that have lost attention heads and neurons, as models that save and load.

Each stock class has one in this module whose name begins with `Cut`, made when it is first used: `CutModernBertModel`
is a `ModernBertModel` without the heads and neurons that its `CutModernBertConfig` says were cut. Folders of such
models contain this file and those that it imports.
"""

from functools import cache

import transformers
from huggingface_hub.dataclasses import strict
from transformers import PreTrainedConfig, PreTrainedModel

from .architecture import CUT_PREFIX, layer_parts
from .slicing import share_bias, slice_heads, slice_neurons


# Auto classes that load such models, as far as the stock encoder has a class for them.
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
    Fields that a stock config has besides its own where heads or neurons were cut.

    Args:
        cut_heads (`list[list[int]]`, *optional*):
            By layer, the attention heads that were cut, counted as before the first of them; layers that share their
            weights are one. An encoder-decoder model has its encoder layers first, then the self-attentions of its
            decoder layers, then their cross-attentions, which have no neurons.
        neurons_per_layer (`list[int]`, *optional*): By layer, how many feed-forward neurons are left.
    """

    cut_heads: list[list[int]] | None = None
    neurons_per_layer: list[int] | None = None

    # The code goes with what is saved, so that `trust_remote_code=True` loads it where hf_mwp is not installed.
    _auto_class = "AutoConfig"

    def __post_init__(self, **kwargs):
        # Of the folder, not of the model: it is written anew with each folder.
        kwargs.pop("auto_map", None)
        super().__post_init__(**kwargs)
        _register_models(type(self))

    def validate_cut_heads(self):
        """Part of the `strict` validation: the heads that were cut are some that there were."""
        for cut, count in zip(self.cut_heads or (), self._uncut_heads(len(self.cut_heads or ())), strict=True):
            wrong = [head for head in cut if head not in range(count)]
            if wrong:
                raise ValueError(f"`cut_heads` names head {wrong[0]}, of heads 0 to {count - 1}.")

    def save_pretrained(self, save_directory, **kwargs):
        """As in `PreTrainedConfig`, with the code of the models."""
        self.auto_map = {name: f"cut_model.{each.__name__}" for name, each in _models(type(self)).items()}
        try:
            super().save_pretrained(save_directory, **kwargs)
        finally:
            del self.auto_map

    @property
    def heads_per_layer(self) -> list[int]:
        """Number of attention heads of each layer."""
        cut_heads = self.cut_heads or [[] for _ in self.neurons_per_layer or ()]
        return [count - len(cut) for cut, count in zip(cut_heads, self._uncut_heads(len(cut_heads)), strict=True)]

    def _uncut_heads(self, layers):
        if not self.is_encoder_decoder:
            return [self.num_attention_heads] * layers
        first = min(self.encoder_layers, layers)
        return [self.encoder_attention_heads] * first + [self.decoder_attention_heads] * (layers - first)


class CutModel:
    """Mixin before a stock model: builds it without the heads and neurons that its config says were cut."""

    def __init__(self, config, *args, **kwargs):
        super().__init__(config, *args, **kwargs)
        parts = layer_parts(self)
        cut_heads = config.cut_heads or [[] for _ in parts]
        neurons = config.neurons_per_layer or [each.num_neurons for each in parts]
        if not len(cut_heads) == len(neurons) == len(parts):
            raise ValueError(
                f"`cut_heads` has {len(cut_heads)} layers and `neurons_per_layer` {len(neurons)}, the encoder "
                f"{len(parts)}: a model that was cut keeps its number of layers."
            )
        wrong = [layer for layer, each in enumerate(parts) if not 0 <= neurons[layer] <= each.num_neurons]
        if wrong:
            raise ValueError(
                f"`neurons_per_layer` leaves {neurons[wrong[0]]} neurons in layer {wrong[0]}, which had "
                f"{parts[wrong[0]].num_neurons}."
            )
        for each, cut, count in zip(parts, cut_heads, neurons, strict=True):
            slice_heads(each, [head for head in range(each.num_heads) if head not in cut])
            slice_neurons(each, range(count))
        share_bias(self)


@cache
def cut_class(stock):
    """Return the class of configs, or of models, that a class of Transformers has here."""
    body = {"__module__": __name__, "__doc__": f"[`{stock.__name__}`] without some attention heads and neurons."}
    if issubclass(stock, PreTrainedConfig):
        body["model_type"] = CUT_PREFIX + stock.model_type
        return strict(type(f"Cut{stock.__name__}", (CutConfig, stock), body))
    body["config_class"] = cut_class(stock.config_class)
    return type(f"Cut{stock.__name__}", (CutModel, stock), body)


def stock_class(cut):
    """Return the class of Transformers that a class of this module was made of."""
    return next(each for each in cut.__mro__ if each.__module__.startswith("transformers."))


def stock_models(config_class):
    """Return the models of Transformers with a config of this class, by the name of the Auto class that loads them."""
    found = {name: getattr(transformers, name)._model_mapping.get(config_class, None) for name in AUTO_CLASSES}
    return {name: model for name, model in found.items() if isinstance(model, type)}


def _models(cut_config_class):
    stock = stock_models(stock_class(cut_config_class))
    return {name: cut_class(model) for name, model in stock.items()}


@cache
def _register_models(cut_config_class):
    # Not earlier: it imports the stock models.
    for name, model_class in _models(cut_config_class).items():
        getattr(transformers, name).register(cut_config_class, model_class)


def __getattr__(name):
    stock = getattr(transformers, name.removeprefix("Cut"), None) if name.startswith("Cut") else None
    if isinstance(stock, type) and issubclass(stock, (PreTrainedConfig, PreTrainedModel)):
        return cut_class(stock)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

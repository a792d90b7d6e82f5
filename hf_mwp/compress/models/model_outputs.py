"""Outputs of models by name."""

from collections.abc import Mapping
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from .model_kind import unwrapped


def named_outputs(model: nn.Module, inputs: Mapping[str, Any]) -> Any:
    """Run a model, possibly wrapped, and return its outputs by name, even if its config has `return_dict=False`."""
    config = getattr(unwrapped(model), "config", None)
    if getattr(config, "return_dict", None) is False:
        inputs = {**inputs, "return_dict": True}
    return model(**inputs)


def set_attention(model: nn.Module, implementation: str) -> None:
    """Switch a model to an attention implementation, such as `"eager"`, which returns attention matrices. In
    Transformers 5.17, T5 does not pass it on to its encoder and decoder."""
    for module in model.modules():
        if isinstance(module, PreTrainedModel):
            module.set_attn_implementation(implementation)


def shape_of(output: Any) -> tuple[int, ...] | None:
    """Return the shape of an output, or `None` if the model has no such output."""
    if output is None:
        return None
    return tuple(output.shape)

"""A cut model as the stock model that it was made of, with zeros where something was cut."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from transformers import PreTrainedModel

from ..models.architecture import LayerParts, cut_heads, layer_parts
from ..models.cut_model import stock_class
from .cutting import new_model


HEAD_PARTS = ("query", "key", "value", "query_key_value", "position_key", "position_query")
NEURON_PARTS = ("intermediate", "gate")


@torch.no_grad()
def stock_form(cut: PreTrainedModel) -> PreTrainedModel:
    """
    Return the stock model of equal outputs of a [`~models.cut_model.CutModel`], which stays as it is: heads have their
    former places, the neurons that are left are the first ones.
    """
    stock = new_model(stock_class(type(cut)), cut)
    shapes = {name: value.shape for name, value in stock.state_dict().items()}
    same = {name: value for name, value in cut.state_dict().items() if shapes[name] == value.shape}
    stock.load_state_dict(same, strict=False)
    for whole, left, gone in zip(layer_parts(stock), layer_parts(cut), cut_heads(cut), strict=True):
        heads = [head for head in range(whole.num_heads) if head not in gone]
        _spread(whole, left, (*HEAD_PARTS, "attention_output"), heads, whole.num_heads, whole.head_dim)
        _spread(whole, left, (*NEURON_PARTS, "output"), range(left.num_neurons), whole.num_neurons, 1)
    return stock


def _spread(
    whole: LayerParts, left: LayerParts, parts: Sequence[str], kept: Sequence[int], count: int, width: int
) -> None:
    """
    Fill the linear layers of heads or of neurons: what is left stands at the places `kept` of `count`, each so many
    rows wide, the rest is zeros. The last part reads the others and has columns in place of rows.
    """
    for part in parts:
        linear, source, dim = getattr(whole, part), getattr(left, part), int(part == parts[-1])
        if linear is None:
            continue
        # A fused layer has all queries, then all keys, then all values.
        places = torch.arange(linear.weight.shape[dim], device=linear.weight.device).view(-1, count, width)
        places = places[:, list(kept)].flatten()
        for name in ("weight",) if dim or linear.bias is None else ("weight", "bias"):
            parameter = getattr(linear, name)
            parameter.zero_()
            if source is not None:
                parameter.index_copy_(dim, places, getattr(source, name))
    if linear.bias is not None:
        linear.bias.copy_(left.bias_of(parts[-1]))


__all__ = ["stock_form"]

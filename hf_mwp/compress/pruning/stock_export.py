"""Export of evenly pruned causal language models to Transformers' own classes."""

import copy
from contextlib import suppress

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor
from transformers import PreTrainedConfig, PreTrainedModel

from hf_mwp.compress.models.architecture import find_architecture, find_encoder, layer_parts
from hf_mwp.compress.models.cut_model import stock_class
from hf_mwp.compress.models.layer_linears import LayerParts, output_dim
from hf_mwp.compress.models.pruned_form import PRUNING_FIELDS, copy_buffers
from hf_mwp.utils.provenance import inherit_training_texts


def stock_model(model: PreTrainedModel) -> PreTrainedModel:
    """
    Return a pruned causal language model as a model of Transformers' own class, with smaller sizes in its config.

    Args:
        model (`PreTrainedModel`): Causal language model, its stack of layers, or a classifier; from [`prune`].

    Returns:
        A model with the same outputs, dtype, device and mode. Missing heads are filled with zeros where the config
        cannot state their number: always for GPT-2 and GPT-NeoX, whose number of heads decides the width of a head,
        and up to a number of heads that divides the width for Llama, Gemma 2 and Gemma 3.

    Raises:
        ValueError: layers have different numbers of heads, key-value heads or neurons.
    """
    layers = layer_parts(model)
    for name in ("num_heads", "num_groups", "num_neurons"):
        sizes = [getattr(linears, name) for linears in layers]
        if len(set(sizes)) > 1:
            raise ValueError(
                f"The layers have different sizes, {name}={sizes}, but a config of Transformers has one size for all. "
                "Choose heads and neurons with `uniform=True` (`choose_heads`, `RemovedUnits.lowest`, "
                "`HeadPruningCallback`), or save the pruned model itself (`save_pretrained`)."
            )
    dense_class = stock_class(type(model))
    dense = dense_class(_stock_config(find_encoder(model).config, layers[0])).to(model.device, model.dtype)
    with torch.no_grad():
        for linears, dense_linears in zip(layers, layer_parts(dense), strict=True):
            _fill_heads(dense_linears, linears)
        weights = dense.state_dict()
        for name, weight in model.state_dict().items():
            if weight.shape == weights[name].shape:
                weights[name].copy_(weight)
    copy_buffers(dense, model)
    if model.can_generate():
        dense.generation_config = copy.deepcopy(model.generation_config)
    inherit_training_texts(dense, model)
    return dense.train(model.training)


def _stock_config(config: PreTrainedConfig, linears: LayerParts) -> PreTrainedConfig:
    """Return the config of Transformers for a model whose layers all have the sizes of one layer."""
    values = {name: value for name, value in config.to_dict().items() if name not in PRUNING_FIELDS}
    values[find_architecture(config).neurons] = max(linears.num_neurons, 1)
    config_class = stock_class(type(config))
    implementation = {"attn_implementation": config._attn_implementation}
    if getattr(config, "num_key_value_heads", None) is None:
        return config_class.from_dict(values, **implementation)
    values["head_dim"] = linears.head_dim
    # Numbers of heads and key-value heads from those of the layers to those of the unpruned model.
    most_queries = config.num_attention_heads // config.num_key_value_heads
    sizes = []
    for num_groups in range(max(linears.num_groups, 1), config.num_key_value_heads + 1):
        for queries_per_group in range(max(linears.queries_per_group, 1), most_queries + 1):
            sizes.append((num_groups * queries_per_group, num_groups))
    for num_heads, num_groups in sorted(sizes):
        values["num_attention_heads"] = num_heads
        values["num_key_value_heads"] = num_groups
        # Some configs accept only a number of heads that divides the width, whatever the width of a head is.
        with suppress(StrictDataclassError):
            return config_class.from_dict(values, **implementation)
    # The sizes of the unpruned model, with the error that they raise.
    return config_class.from_dict(values, **implementation)


def _fill_heads(dense: LayerParts, linears: LayerParts) -> None:
    """Copy the heads of a layer to one with as many heads or more, whose further heads and neurons become zero."""
    heads = range(linears.num_heads)
    dense_heads = []
    for head in heads:
        group, query = divmod(head, linears.queries_per_group)
        dense_heads.append(group * dense.queries_per_group + query)
    for linear in (*dense.state_projections, dense.attention_output, *dense.neuron_projections, dense.output):
        linear.weight.zero_()
        if linear.bias is not None:
            linear.bias.zero_()
    targets = dense.state_rows(dense_heads)
    sources = linears.state_rows(heads)
    for (target, target_rows), (source, source_rows) in zip(targets, sources, strict=True):
        _copy(target.weight, source.weight, output_dim(target), target_rows, source_rows)
        if target.bias is not None:
            _copy(target.bias, source.bias, 0, target_rows, source_rows)
    target = dense.attention_output
    target_columns = dense.query_rows(dense_heads)
    source_columns = linears.query_rows(heads)
    _copy(target.weight, linears.attention_output.weight, 1 - output_dim(target), target_columns, source_columns)


def _copy(target: Tensor, source: Tensor, dim: int, target_index: Tensor, source_index: Tensor) -> None:
    device = target.device
    target.index_copy_(dim, target_index.to(device), source.index_select(dim, source_index.to(device)))

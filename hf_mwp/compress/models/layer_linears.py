"""Linear layers of one layer of a model: projections of attention heads and feed-forward neurons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D


# Fields of `Architecture` that name a linear layer.
PARTS = (
    "query",
    "key",
    "value",
    "query_key_value",
    "position_key",
    "position_query",
    "attention_output",
    "intermediate",
    "gate",
    "output",
)


class LayerParts:
    """
    Linear layers of one layer, named as in [`Architecture`]; `None` if the architecture lacks the linear layer, or if
    all its heads or neurons were pruned. Raises `ValueError` for adapters and quantised layers.

    A head is a query head, as in attention matrices and in the config's `num_attention_heads`. With grouped queries,
    consecutive heads share a key-value head; they are one group. Without, each head is a group of its own.
    """

    def __init__(self, layer: nn.Module, architecture: Any, head_dim: int, index: int) -> None:
        self.layer = layer
        self.architecture = architecture
        self.head_dim = head_dim
        self.index = index
        for field in PARTS:
            setattr(self, field, _linear(layer, getattr(architecture, field), index))

    @property
    def num_heads(self) -> int:
        return 0 if self.attention_output is None else in_size(self.attention_output) // self.head_dim

    @property
    def num_groups(self) -> int:
        """Number of key-value heads."""
        if self.key is not None:
            return out_size(self.key) // self.head_dim
        if self.query_key_value is not None:
            # All heads have a query, and each group has a key and a value.
            return (out_size(self.query_key_value) // self.head_dim - self.num_heads) // 2
        return self.num_heads

    @property
    def queries_per_group(self) -> int:
        return self.num_heads // max(self.num_groups, 1)

    @property
    def context_size(self) -> int:
        """Width of the contexts of all heads."""
        return self.num_heads * self.head_dim

    @property
    def num_neurons(self) -> int:
        return 0 if self.output is None else in_size(self.output)

    @property
    def state_projections(self) -> list[nn.Module]:
        """Query, key and value projections of the hidden states, fused or separate."""
        return list(filter(None, (self.query, self.key, self.value, self.query_key_value)))

    @property
    def head_projections(self) -> list[nn.Module]:
        """All linear layers whose outputs belong to heads."""
        return [*self.state_projections, *filter(None, (self.position_key, self.position_query))]

    @property
    def neuron_projections(self) -> list[nn.Module]:
        """The linear layers whose outputs belong to neurons."""
        return list(filter(None, (self.intermediate, self.gate)))

    def query_rows(self, heads: Sequence[int]) -> Tensor:
        """Return the indices of some heads' features among the contexts of all heads, and among all queries."""
        return _features(heads, self.head_dim)

    def state_rows(self, heads: Sequence[int]) -> list[tuple[nn.Module, Tensor]]:
        """Return [`state_projections`], each with the indices of its outputs that belong to some heads and to their
        groups."""
        groups = sorted({head // max(self.queries_per_group, 1) for head in heads})
        query_rows = self.query_rows(heads)
        group_rows = _features(groups, self.head_dim)
        rows = []
        if self.query is not None:
            rows.append((self.query, query_rows))
        for linear in filter(None, (self.key, self.value)):
            rows.append((linear, group_rows))
        if self.query_key_value is not None:
            if self.architecture.is_interleaved:
                fused_rows = _features(heads, 3 * self.head_dim)
            else:
                keys_start = self.context_size
                values_start = keys_start + self.num_groups * self.head_dim
                fused_rows = torch.cat([query_rows, keys_start + group_rows, values_start + group_rows])
            rows.append((self.query_key_value, fused_rows))
        return rows

    def head_rows(self, heads: Sequence[int]) -> list[tuple[nn.Module, Tensor]]:
        """Return [`state_rows`] with the projections of relative positions."""
        rows = self.state_rows(heads)
        for linear in filter(None, (self.position_key, self.position_query)):
            rows.append((linear, self.query_rows(heads)))
        return rows

    def check_remaining(self, heads: Sequence[int]) -> None:
        """Raise `ValueError` if attention cannot be computed with only some of its heads: each key-value group must
        keep equally many of its queries, or none."""
        heads_per_group = Counter(head // self.queries_per_group for head in heads)
        if len(set(heads_per_group.values())) > 1:
            counts = [heads_per_group[group] for group in range(self.num_groups)]
            raise ValueError(
                f"Layer {self.index} would keep {counts} heads in its {self.num_groups} key-value groups of "
                f"{self.queries_per_group} consecutive heads. Remove whole groups, or equally many heads of each "
                "group; `choose_heads` does so with `groups=head_groups(model)`."
            )

    def bias_of(self, part: str) -> nn.Parameter | None:
        """Return the bias of `"attention_output"` or `"output"`, even if no head or neuron is left."""
        name = getattr(self.architecture, part)
        return None if name is None else self.layer.get_submodule(name).bias


def _features(units: Sequence[int], width: int) -> Tensor:
    """Return the indices of the features of units that have `width` features each."""
    starts = torch.tensor([*units], dtype=torch.long) * width
    return (starts[:, None] + torch.arange(width)).flatten()


def output_dim(linear: nn.Module) -> int:
    """Return the dimension of the outputs in the weight of a linear layer, which GPT-2 stores transposed."""
    return int(isinstance(linear, Conv1D))


def out_size(linear: nn.Module) -> int:
    """Return the number of outputs of a linear layer."""
    return linear.weight.shape[output_dim(linear)]


def in_size(linear: nn.Module) -> int:
    """Return the number of inputs of a linear layer."""
    return linear.weight.shape[1 - output_dim(linear)]


def _linear(layer: nn.Module, name: str | None, index: int) -> nn.Module | None:
    if name is None:
        return None
    module = layer
    for step in name.split("."):
        # Some encoders of a type lack optional linear layers.
        module = getattr(module, step, None)
        if module is None:
            return None
    if type(module) is nn.Linear or isinstance(module, Conv1D):
        return module
    if list(module.parameters(recurse=False)) and not hasattr(module, "weight"):
        # Only the bias of the pruned sublayer is left.
        return None
    raise ValueError(
        f"{name} of layer {index} is a {type(module).__name__}, not a plain linear layer. Merge adapters first "
        "(`hf_mwp.merge_lora(model)`, or `merge_and_unload()` of a peft model), and load it without quantisation."
    )

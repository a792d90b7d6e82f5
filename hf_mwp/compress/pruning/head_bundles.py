"""Heads that can only be pruned together, because they share a key and a value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.checked_types import checked


UNITS = ("group", "query")


@checked
def head_groups(model: nn.Module) -> list[list[int]]:
    """Return the key-value group of each head in each layer: `[[0, 0, 1, 1], ...]` for 4 heads in 2 groups. Without
    grouped queries, each head is a group. Raises the errors of [`~models.architecture.find_encoder`]."""
    groups = []
    for linears in layer_parts(model):
        groups.append([head // linears.queries_per_group for head in range(linears.num_heads)])
    return groups


@dataclass(frozen=True, eq=False)
class HeadBundles:
    """
    Heads of each layer in bundles that are pruned as a whole, and the mean scores of the bundles.

    Args:
        heads (`list[list[list[int]]]`): Heads of each bundle of each layer.
        scores (`Tensor` of shape `(layers, bundles of the largest layer)`): Mean scores, NaN if a layer has fewer.
    """

    heads: list[list[list[int]]]
    scores: Tensor

    @classmethod
    def of(cls, scores: Tensor, groups: Sequence[Sequence[int]] | None = None, unit: str = "group") -> HeadBundles:
        """
        Bundle the heads that have a score.

        Args:
            scores (`Tensor` of shape `(layers, heads)`): Scores of heads; NaN for heads that are gone.
            groups (`Sequence[Sequence[int]]`, *optional*):
                Key-value group of each head in each layer ([`~models.architecture.head_groups`]). By default, each
                head is a bundle, as for models without grouped queries.
            unit (`str`, *optional*, defaults to `"group"`):
                `"group"` bundles the heads of a key-value group. `"query"` bundles one head of each group, so that
                each group keeps equally many: the heads with the lowest score in their groups, then those with the
                second lowest, and so on. With a single group, bundles are single heads. With a single head in each
                group, they are with either unit.

        Raises:
            ValueError: `unit` has another value, or heads have no group.
        """
        check_unit(unit)
        if groups is not None:
            _check_groups(scores, groups)
        heads = []
        rows = []
        for layer, row in enumerate(scores):
            open_heads = row.isfinite().nonzero().flatten().tolist()
            layer_groups = range(len(row))
            if groups is not None:
                layer_groups = groups[layer]
            heads_by_group = {}
            for head in open_heads:
                heads_by_group.setdefault(layer_groups[head], []).append(head)
            bundles = list(heads_by_group.values())
            is_grouped = len(set(layer_groups)) < len(layer_groups)
            if unit == "query" and is_grouped:
                bundles = _across_groups(bundles, row)
            heads.append(bundles)
            means = [row[bundle].double().mean().item() for bundle in bundles]
            rows.append(torch.tensor(means, dtype=torch.float64))
        return cls(heads, pad_sequence(rows, batch_first=True, padding_value=torch.nan))

    @property
    def size(self) -> int:
        """Number of heads in the largest bundle."""
        largest = 1
        for bundles in self.heads:
            largest = max([largest, *map(len, bundles)])
        return largest

    def members(self, chosen: dict[int, list[int]]) -> dict[int, list[int]]:
        """Return the heads of chosen bundles by layer, in ascending order."""
        heads = {}
        for layer, bundles in chosen.items():
            members = []
            for bundle in bundles:
                members += self.heads[layer][bundle]
            heads[layer] = sorted(members)
        return heads


def check_unit(unit: str) -> None:
    """Raise `ValueError` if a unit of pruning does not exist."""
    if unit not in UNITS:
        raise ValueError(f"`unit` must be one of {', '.join(map(repr, UNITS))}, got {unit!r}.")


def _check_groups(scores: Tensor, groups: Sequence[Sequence[int]]) -> None:
    """Raise `ValueError` unless each head with a score has a group."""
    num_groups = [len(layer_groups) for layer_groups in groups]
    num_heads = []
    for row in scores:
        # Heads that are gone before the last one have no score.
        scored_heads = row.isfinite().nonzero().flatten().tolist()
        num_heads.append(max(scored_heads, default=-1) + 1)
    is_complete = len(num_groups) == len(num_heads)
    if is_complete:
        is_complete = all(heads <= layer_groups for heads, layer_groups in zip(num_heads, num_groups, strict=True))
    if not is_complete:
        raise ValueError(
            f"`groups` has groups of {num_groups} heads, but the layers have {num_heads} heads with scores. Pass "
            "`head_groups(model)` of the model that was scored."
        )


def _across_groups(groups: list[list[int]], scores: Tensor) -> list[list[int]]:
    """Return bundles of one head of each group: all heads with the lowest score of their group first."""
    ordered_groups = []
    for heads in groups:
        order = scores[heads].argsort(stable=True).tolist()
        ordered_groups.append([heads[position] for position in order])
    return [list(bundle) for bundle in zip(*ordered_groups, strict=False)]

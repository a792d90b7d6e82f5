"""Matching of the heads of two models of which some were pruned."""

from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..models.architecture import cut_heads, layer_order, layer_parts
from ..pruning.gates import HeadGates


@dataclass(frozen=True)
class SurvivingHeads:
    """The heads of a layer that are neither cut nor closed by a gate."""

    total: int  # before the first was cut
    head_dim: int
    places: dict[int, int]  # under the number that a head had then, its place among those that are there

    @property
    def is_pruned(self) -> bool:
        """Return whether any head is missing."""
        return len(self.places) < self.total


def surviving_heads(model: nn.Module | None) -> list[SurvivingHeads] | None:
    """The surviving heads layer by layer; `None` for a model of whose heads nothing is known."""
    if model is None:
        return None
    layers = []
    with suppress(ValueError):
        gone = cut_heads(model), HeadGates.closed_on(model)
        for parts, cut, closed in zip(layer_parts(model), *gone, strict=True):
            total = parts.num_heads + len(cut)
            numbers = [head for head in range(total) if head not in cut]
            places = {head: place for place, head in enumerate(numbers) if place not in closed}
            layers.append(SurvivingHeads(total, parts.head_dim, places))
        # Layers that share their weights have the same heads.
        layers = [layers[place] for place in layer_order(model)]
    return layers or None


def counterparts(
    student: SurvivingHeads, teacher: SurvivingHeads | None
) -> tuple[SurvivingHeads, SurvivingHeads | None]:
    """
    The heads of two layers that are to be compared: of layers that had equally many heads those that survive in both,
    in the same order; of others those that survive, which are nobody's own counterparts.
    """
    if teacher is None or teacher.total != student.total:
        return student, teacher
    common = student.places.keys() & teacher.places.keys()
    return tuple(
        SurvivingHeads(each.total, each.head_dim, {head: each.places[head] for head in sorted(common)})
        for each in (student, teacher)
    )


def keep_maps(maps: Tensor, heads: SurvivingHeads | None) -> Tensor:
    """Select heads of attention matrices `(batch, heads, queries, keys)`."""
    return maps if heads is None else _keep(maps, heads, 1, 1)


def keep_vectors(vectors: Tensor, heads: SurvivingHeads | None) -> Tensor:
    """Select heads of the concatenated vectors `(batch, tokens, width)` of all heads."""
    return vectors if heads is None else _keep(vectors, heads, heads.head_dim, -1)


def _keep(values: Tensor, heads: SurvivingHeads, width: int, dim: int) -> Tensor:
    places = [*heads.places.values()]
    if places == [*range(values.shape[dim] // width)]:
        return values
    # An index on the host would have to be waited for.
    return torch.cat([values.narrow(dim, place * width, width) for place in places], dim)

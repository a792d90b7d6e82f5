"""Matching of attention heads between two models after pruning."""

from contextlib import suppress
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ..models.architecture import cut_heads, layer_order, layer_parts
from ..pruning.gates import HeadGates


@dataclass(frozen=True)
class SurvivingHeads:
    """Heads of a layer that are neither pruned nor masked by a pruning gate."""

    total: int  # number of heads before pruning
    head_dim: int
    places: dict[int, int]  # from a head's number before pruning to its place among the unpruned heads

    @property
    def is_pruned(self) -> bool:
        """Return whether any head of the layer is missing."""
        return len(self.places) < self.total


def surviving_heads(model: nn.Module | None) -> list[SurvivingHeads] | None:
    """Return the surviving heads layer by layer, or `None` for a model whose heads are not known."""
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
    student: SurvivingHeads | None, teacher: SurvivingHeads | None
) -> tuple[SurvivingHeads | None, SurvivingHeads | None]:
    """
    Return the heads of two layers that are compared. If both layers had the same number of heads, these are the heads
    that survive in both, in the same order. Otherwise they are all surviving heads of each layer, which do not
    correspond one to one; all heads if those of the student are not known (`None`).
    """
    if student is None:
        return None, None
    if teacher is None or teacher.total != student.total:
        return student, teacher
    common = student.places.keys() & teacher.places.keys()
    return tuple(
        SurvivingHeads(each.total, each.head_dim, {head: each.places[head] for head in sorted(common)})
        for each in (student, teacher)
    )


def select_heads(values: Tensor, heads: SurvivingHeads, width: int, dim: int) -> Tensor:
    """Select heads of a tensor in which each head takes up `width` entries of the dimension `dim`."""
    places = [*heads.places.values()]
    if places == [*range(values.shape[dim] // width)]:
        return values
    # Slices, since the device would have to wait for an index tensor from the host.
    return torch.cat([values.narrow(dim, place * width, width) for place in places], dim)

"""Heads and neurons to remove from a teacher, and the sparse teacher without them."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ...models.architecture import layer_parts
from ...options.checks import check_numbers
from ...usage_error import UsageError
from ..cutting import prune
from ..gates import HeadGates, NeuronGates
from .knowledgeable_scores import UnitScores


@dataclass(frozen=True)
class RemovedUnits:
    """
    The heads and neurons that a sparse teacher does without.

    Args:
        heads (`Mapping[int, list[int]]`): By layer, heads in ascending order; layers that keep all are left out.
        neurons (`Mapping[int, list[int]]`): The same of feed-forward neurons.
    """

    heads: Mapping[int, list[int]]
    neurons: Mapping[int, list[int]]

    @classmethod
    def lowest(
        cls, scores: UnitScores, sparsity: float, round_to: int | None = None, head_dim: int | None = None
    ) -> RemovedUnits:
        """
        The units with the lowest scores over all layers: `round(sparsity · N)` heads and as large a share of the
        neurons, ranked apart (Yang et al., section 3.2). Ties remove the unit of the lower layer first, then
        that of the lower index.

        Args:
            scores ([`UnitScores`]): Scores of all units of the teacher.
            sparsity (`float`): Share to remove, at least 0 and below 1.
            round_to (`int`, *optional*):
                Round the number of neurons removed from a layer to a multiple of this, half to even, 8 in the
                authors' program, so that the share is no longer exactly `sparsity`.
            head_dim (`int`, *optional*):
                Width of a head: with `round_to`, heads are rounded as so many columns of the output projection each,
                then to whole heads. Nothing changes for widths that are multiples of `round_to`.

        Raises:
            UsageError: a sparsity outside `[0, 1)`, or one that leaves no head or no neuron at all.
        """
        check_sparsity(sparsity)
        if round_to is not None and round_to < 1:
            raise UsageError(f"`round_to` must be at least 1, not {round_to}.")
        return cls(
            _lowest("heads", scores.heads, sparsity, round_to if head_dim else None, head_dim or 1),
            _lowest("neurons", scores.neurons, sparsity, round_to),
        )


def cut_teacher(teacher: nn.Module, removed: RemovedUnits) -> nn.Module:
    """
    A teacher without some heads and neurons, smaller and faster, which saves and loads as [`prune`] says. A layer that
    loses all heads, or all neurons, loses the bias of the output projection too, as in the authors' program.

    Args:
        teacher (`nn.Module`): As [`prune`] takes it; it stays as it is.
        removed ([`RemovedUnits`]): Units to remove.

    Raises:
        UsageError: the teacher has gates.
    """
    check_no_gates(teacher)
    return _without_biases(prune(teacher, removed.heads, removed.neurons), removed, teacher)


def mask_teacher(teacher: nn.Module, removed: RemovedUnits) -> nn.Module:
    """
    A copy of a teacher with gates closed on some heads and neurons: the outputs of [`cut_teacher`] in the shapes of
    the teacher. It is no smaller, and what it saves has no gates.
    """
    check_no_gates(teacher)
    masked = copy.deepcopy(teacher)
    HeadGates(masked).close(removed.heads)
    NeuronGates(masked).close(removed.neurons)
    return _without_biases(masked, removed, teacher)


def check_sparsity(sparsity: float) -> None:
    """Raise [`UsageError`] unless a sparsity is at least 0 and below 1."""
    check_numbers(sparsity=sparsity)
    if not 0 <= sparsity < 1:
        raise UsageError(f"The sparsity of a teacher must be at least 0 and below 1, not {sparsity}.")


def _lowest(name: str, scores: Tensor, sparsity: float, round_to: int | None, width: int = 1) -> dict[int, list[int]]:
    # How many of the lowest scores, over all layers, are in each layer.
    places = scores.isfinite().nonzero()
    total = len(places)
    order = scores[scores.isfinite()].argsort(stable=True)[: round(sparsity * total)]
    gone = torch.bincount(places[order, 0], minlength=len(scores)).tolist()
    if round_to is not None:
        # In columns of the weights, `width` for each unit.
        gone = [
            min(round(round(count * width / round_to) * round_to / width), there)
            for count, there in zip(gone, scores.isfinite().sum(1).tolist(), strict=True)
        ]
    if sum(gone) >= total:
        raise UsageError(
            f"A sparsity of {sparsity} leaves an empty teacher: of its {total} {name} none is left. Take a lower one."
        )
    # Within a layer the lowest go, whatever their number.
    return {
        layer: row.nan_to_num(torch.inf).argsort(stable=True)[:count].sort().values.tolist()
        for layer, (row, count) in enumerate(zip(scores, gone, strict=True))
        if count
    }


def _without_biases(sparse: nn.Module, removed: RemovedUnits, teacher: nn.Module) -> nn.Module:
    """Zero the biases of sublayers that lose all heads or all neurons of the teacher."""
    for layer, (left, whole) in enumerate(zip(layer_parts(sparse), layer_parts(teacher), strict=True)):
        for part, gone, count in (
            ("attention_output", removed.heads.get(layer), whole.num_heads),
            ("output", removed.neurons.get(layer), whole.num_neurons),
        ):
            bias = left.bias_of(part)
            if gone and len({*gone}) == count and bias is not None:
                bias.data.zero_()
    return sparse


def check_no_gates(teacher: nn.Module) -> None:
    """Raise [`UsageError`] if a teacher has gates."""
    if HeadGates.found_on(teacher) or NeuronGates.found_on(teacher):
        raise UsageError("The teacher has gates, which a sparse one would not have: take them off, or cut it first.")

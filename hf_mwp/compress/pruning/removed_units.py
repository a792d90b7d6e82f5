"""Sparse teachers without the heads and neurons of the lowest scores."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.architecture import count_units, layer_parts
from hf_mwp.compress.models.pruned_form import pruned_class
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .cutting import prune
from .gate_gradients import measure_scores
from .gates import HeadGates, NeuronGates
from .head_bundles import HeadBundles
from .knowledgeable_scores import UnitScores


@checked
@dataclass(frozen=True)
class RemovedUnits:
    """Heads and feed-forward neurons to remove from each layer of a teacher, in ascending order."""

    heads: Mapping[int, list[int]]
    neurons: Mapping[int, list[int]]

    @classmethod
    def lowest(
        cls,
        scores: UnitScores,
        sparsity: float,
        round_to: int | None = None,
        head_dim: int | None = None,
        unit: str = "group",
        uniform: bool = False,
    ) -> RemovedUnits:
        """
        Choose the units with the lowest scores over all layers: `round(sparsity · N)` heads and the same share of
        neurons, ranked separately (Yang et al., section 3.2). Among equal scores, the lower layer comes first, then
        the lower index. With `round_to` (8 in the authors' implementation), the number of neurons removed from each
        layer, and of columns of heads if `head_dim` is given, is rounded to a multiple (half to even), so that the
        share is not exactly `sparsity`.

        Heads that share keys and values are removed in bundles, whose number and scores count (the mean of their
        heads): of a whole key-value group or, with `unit="query"`, one of each group; see [`choose_heads`]. With
        `uniform`, this share of the units of each layer is removed, so that [`export_dense`] can write a causal
        language model of Transformers' own class.

        Raises:
            UsageError: `sparsity` is outside `[0, 1)`, or no unit is left. With `uniform`: layers have different
                numbers of units.
            ValueError: `unit` does not exist.
        """
        check_sparsity(sparsity)
        groups = None if scores.groups is None else scores.groups.tolist()
        bundles = HeadBundles.of(scores.heads, groups, unit)
        width = None if head_dim is None else head_dim * bundles.size
        chosen_bundles = _lowest("heads", bundles.scores, sparsity, round_to, width, uniform)
        neurons = _lowest("neurons", scores.neurons, sparsity, round_to, 1, uniform)
        return cls(bundles.members(chosen_bundles), neurons)


@checked
def cut_teacher(teacher: nn.Module, removed: RemovedUnits) -> nn.Module:
    """Return a smaller copy of a teacher, see [`prune`]. Where a layer loses all heads or neurons, the output
    projection's bias is zeroed too, as in the authors' implementation. Raises [`UsageError`] if it has gates."""
    check_no_gates(teacher)
    return _without_biases(prune(teacher, removed.heads, removed.neurons), removed, teacher)


@checked
def mask_teacher(teacher: nn.Module, removed: RemovedUnits) -> nn.Module:
    """Return the result of [`cut_teacher`] with the teacher's shapes, by closing gates, which are not saved."""
    check_no_gates(teacher)
    masked = copy.deepcopy(teacher)
    HeadGates(masked).close(removed.heads)
    NeuronGates(masked).close(removed.neurons)
    return _without_biases(masked, removed, teacher)


@dataclass(frozen=True)
class UnitSparsifier:
    """Pruning granularity of [`~trainers.StarkTrainer`]: heads and neurons. `check` raises the errors of `sparse`. The
    fields are arguments of [`RemovedUnits.lowest`]."""

    round_to: int | None = None
    unit: str = "group"
    uniform: bool = False

    random = staticmethod(UnitScores.random)

    def measure(self, teacher, batches, student, temperature, per_example):
        return measure_scores(teacher, batches, student, per_example=per_example, temperature=temperature)

    def check(self, teacher, scores, sparsity):
        pruned_class(teacher)
        if scores is None:
            RemovedUnits.lowest(UnitScores.random(teacher), sparsity, unit=self.unit, uniform=self.uniform)
        else:
            scores.check_fits(teacher)
            self._removed(teacher, scores, sparsity)

    def sparse(self, teacher, scores, sparsity):
        return cut_teacher(teacher, self._removed(teacher, scores, sparsity))

    def _removed(self, teacher: nn.Module, scores: UnitScores, sparsity: float) -> RemovedUnits:
        head_dim = layer_parts(teacher)[0].head_dim
        return RemovedUnits.lowest(scores, sparsity, self.round_to, head_dim, self.unit, self.uniform)


def check_sparsity(sparsity: float) -> None:
    """Raise [`UsageError`] unless a sparsity is at least 0 and below 1."""
    if not 0 <= sparsity < 1:
        raise UsageError(f"The sparsity of a teacher must be at least 0 and below 1, got {sparsity}.")


def _lowest(
    name: str, scores: Tensor, sparsity: float, round_to: int | None, width: int | None, uniform: bool
) -> dict[int, list[int]]:
    # Count the lowest scores over all layers by layer.
    scored = scores.isfinite()
    layers = scored.nonzero()[:, 0]
    total = len(layers)
    num_units = scored.sum(1).tolist()
    if uniform:
        if len(set(num_units)) > 1:
            raise UsageError(
                f"Layers have {num_units} {name} to choose from, of which equally many cannot remain. Use "
                "`uniform=False`."
            )
        num_removed = [round(sparsity * num_units[0])] * len(scores)
    else:
        order = scores[scored].argsort(stable=True)[: round(sparsity * total)]
        num_removed = torch.bincount(layers[order], minlength=len(scores)).tolist()
    if round_to and width:
        # Round the number of weight columns, `width` for each unit.
        for layer, num_layer_units in enumerate(num_units):
            columns = round(num_removed[layer] * width / round_to) * round_to
            num_removed[layer] = min(round(columns / width), num_layer_units)
    if sum(num_removed) >= total:
        raise UsageError(
            f"A sparsity of {sparsity} would remove all {total} {name} of the teacher. Choose a lower sparsity."
        )
    # Remove the lowest scores within each layer.
    removed = {}
    for layer, row in enumerate(scores):
        if num_removed[layer]:
            lowest = row.nan_to_num(torch.inf).argsort(stable=True)[: num_removed[layer]]
            removed[layer] = sorted(lowest.tolist())
    return removed


def _without_biases(sparse: nn.Module, removed: RemovedUnits, teacher: nn.Module) -> nn.Module:
    """Zero the biases of sublayers that lose all heads or all neurons of the teacher."""
    num_heads, num_neurons = count_units(teacher)
    layers = layer_parts(sparse)
    outputs = (("attention_output", removed.heads, num_heads), ("output", removed.neurons, num_neurons))
    for name, removed_units, num_units in outputs:
        for layer, units in removed_units.items():
            bias = layers[layer].bias_of(name)
            if units and len({*units}) == num_units[layer] and bias is not None:
                bias.data.zero_()
    return sparse


def check_no_gates(teacher: nn.Module) -> None:
    """Raise [`UsageError`] if a teacher has gates."""
    if HeadGates.found_on(teacher) or NeuronGates.found_on(teacher):
        raise UsageError("The teacher has gates, which a sparse copy would lose. Remove them or call `prune` first.")

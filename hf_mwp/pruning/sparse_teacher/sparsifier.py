"""Pruning granularity of a teacher: heads and neurons, or individual weights."""

from __future__ import annotations

from dataclasses import dataclass

from torch import nn

from ...models.architecture import layer_parts
from .gate_gradients import measure_scores
from .knowledgeable_scores import UnitScores
from .removed_units import RemovedUnits, cut_teacher, mask_teacher
from .unstructured import check_weights, measure_weight_scores, random_weight_scores, zero_weights


@dataclass(frozen=True)
class UnitSparsifier:
    """
    Pruning granularity of [`~trainers.StarkTrainer`]: heads and neurons. `measure` returns their scores, `random`
    returns random scores, `sparse` returns the teacher without the lowest scores, and `check` raises [`UsageError`] if
    given scores belong to a different teacher, or the sparsity would remove everything.

    Args:
        mask (`bool`, *optional*, defaults to `False`): Whether to mask units instead of removing them.
        round_to (`int`, *optional*): See [`RemovedUnits.lowest`].
    """

    mask: bool = False
    round_to: int | None = None

    def measure(self, teacher, batches, student, temperature, per_example):
        return measure_scores(teacher, batches, student, per_example=per_example, temperature=temperature)

    def random(self, teacher, seed):
        return UnitScores.random(teacher, seed)

    def check(self, teacher, scores, sparsity):
        if scores is None:
            RemovedUnits.lowest(UnitScores.random(teacher), sparsity)
        else:
            scores.check_fits(teacher)
            self._removed(teacher, scores, sparsity)

    def sparse(self, teacher, scores, sparsity):
        make = mask_teacher if self.mask else cut_teacher
        return make(teacher, self._removed(teacher, scores, sparsity))

    def _removed(self, teacher: nn.Module, scores: UnitScores, sparsity: float) -> RemovedUnits:
        return RemovedUnits.lowest(scores, sparsity, self.round_to, layer_parts(teacher)[0].head_dim)


@dataclass(frozen=True)
class WeightSparsifier:
    """Pruning granularity like [`UnitSparsifier`], but for single weights (Yang et al., table 6)."""

    def measure(self, teacher, batches, student, temperature, per_example):
        return measure_weight_scores(teacher, batches, student, temperature=temperature)

    random = staticmethod(random_weight_scores)
    check = staticmethod(check_weights)
    sparse = staticmethod(zero_weights)

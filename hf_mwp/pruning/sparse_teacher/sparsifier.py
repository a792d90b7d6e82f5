"""Pruning granularity of a teacher: heads and neurons, or individual weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

from torch import nn

from ...models.architecture import layer_parts
from .gate_gradients import measure_scores
from .knowledgeable_scores import KnowledgeableScores, UnitScores
from .removed_units import RemovedUnits, cut_teacher, mask_teacher
from .unstructured import check_weights, measure_weight_scores, random_weight_scores, zero_weights


class Sparsifier(ABC):
    """Pruning granularity of [`~trainers.StarkTrainer`]. A frozen dataclass, whose fields tell it from others."""

    @abstractmethod
    def measure(self, teacher, batches, student, temperature, per_example) -> KnowledgeableScores:
        """Measure scores of what can go; see [`measure_scores`]."""

    @abstractmethod
    def random(self, teacher: nn.Module, seed: int) -> UnitScores:
        """Scores by chance."""

    @abstractmethod
    def check(self, teacher: nn.Module, scores: UnitScores | None, sparsity: float) -> None:
        """Raise `UsageError` if the scores, where given, are another teacher's, or a sparsity leaves nothing of it."""

    @abstractmethod
    def sparse(self, teacher: nn.Module, scores: UnitScores, sparsity: float) -> nn.Module:
        """A copy of a teacher without what scores lowest."""


@dataclass(frozen=True)
class UnitSparsifier(Sparsifier):
    """
    Heads and neurons go.

    Args:
        mask (`bool`, *optional*, defaults to `False`): Mask them in place of cutting them.
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
class WeightSparsifier(Sparsifier):
    """Single weights of attention and feed-forward networks become 0 (Yang et al., table 6)."""

    def measure(self, teacher, batches, student, temperature, per_example):
        return measure_weight_scores(teacher, batches, student, temperature=temperature)

    random = staticmethod(random_weight_scores)
    check = staticmethod(check_weights)
    sparse = staticmethod(zero_weights)

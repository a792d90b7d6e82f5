"""Which heads and neurons make a teacher hard to learn from (STARK), and the teacher without them."""

from .gate_gradients import measure_scores
from .knowledgeable_scores import KnowledgeableScores, UnitScores
from .removed_units import RemovedUnits, cut_teacher, mask_teacher
from .score_density import ScoreDensity
from .unstructured import measure_weight_scores, zero_random_weights, zero_weights


__all__ = [
    "KnowledgeableScores",
    "RemovedUnits",
    "ScoreDensity",
    "UnitScores",
    "cut_teacher",
    "mask_teacher",
    "measure_scores",
    "measure_weight_scores",
    "zero_random_weights",
    "zero_weights",
]

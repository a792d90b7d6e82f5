"""What makes a model smaller: gates, importance of heads, cutting.

What a name needs is loaded when it is used: the callback alone needs `transformers.Trainer`.
"""

from ..lazy_names import lazy_names


_MODULES = {
    "AttentionEntropy": "head_importance",
    "AttentionPeak": "head_importance",
    "CombinedImportance": "head_importance",
    "GateGradient": "head_importance",
    "HeadGates": "gates",
    "HeadImportance": "head_importance",
    "HeadPruningCallback": "head_pruning_callback",
    "KnowledgeableScores": "sparse_teacher",
    "NeuronGates": "gates",
    "RandomImportance": "head_importance",
    "RemovedUnits": "sparse_teacher",
    "ScoreDensity": "sparse_teacher",
    "UnitScores": "sparse_teacher",
    "WeightNorm": "head_importance",
    "choose_heads": "head_choice",
    "cut_teacher": "sparse_teacher",
    "draw_densities": "score_drawing",
    "draw_importance": "score_drawing",
    "export_dense": "dense_export",
    "mask_teacher": "sparse_teacher",
    "measure_scores": "sparse_teacher",
    "measure_weight_scores": "sparse_teacher",
    "prune": "cutting",
    "prune_heads": "cutting",
    "prune_neurons": "cutting",
    "rows_of": "score_drawing",
    "scores_of": "score_drawing",
    "zero_random_weights": "sparse_teacher",
    "zero_weights": "sparse_teacher",
}

__all__ = list(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

"""Pruning of attention heads, neurons and weights: importance scores, gates and slicing.

Names are imported on first use, because only the callback needs `transformers.Trainer`.
"""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "cutting": ("heads_of_groups", "prune", "prune_heads", "prune_neurons"),
    "dense_export": ("export_dense",),
    "gates": ("HeadGates", "NeuronGates"),
    "head_bundles": ("head_groups",),
    "head_choice": ("choose_heads",),
    "head_importance": (
        *("AttentionEntropy", "AttentionPeak", "CombinedImportance", "GateGradient", "HeadImportance"),
        *("RandomImportance", "WeightNorm"),
    ),
    "head_pruning_callback": ("HeadPruningCallback",),
    "score_drawing": ("draw_densities", "draw_importance", "rows_of", "scores_of"),
    "gate_gradients": ("measure_scores",),
    "knowledgeable_scores": ("KnowledgeableScores", "UnitScores"),
    "removed_units": ("RemovedUnits", "cut_teacher", "mask_teacher"),
    "score_density": ("ScoreDensity",),
    "unstructured": ("measure_weight_scores", "zero_random_weights", "zero_weights"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

"""What makes a model smaller: gates, importance of heads, cutting."""

from .cutting import prune_heads, prune_neurons
from .dense_export import export_dense
from .gates import HeadGates, NeuronGates
from .head_choice import choose_heads
from .head_importance import (
    AttentionEntropy,
    AttentionPeak,
    CombinedImportance,
    GateGradient,
    HeadImportance,
    RandomImportance,
    WeightNorm,
)
from .head_pruning_callback import HeadPruningCallback
from .importance_heatmap import draw_importance, rows_of, scores_of


__all__ = [
    "AttentionEntropy",
    "AttentionPeak",
    "CombinedImportance",
    "GateGradient",
    "HeadGates",
    "HeadImportance",
    "HeadPruningCallback",
    "NeuronGates",
    "RandomImportance",
    "WeightNorm",
    "choose_heads",
    "draw_importance",
    "export_dense",
    "prune_heads",
    "prune_neurons",
    "rows_of",
    "scores_of",
]

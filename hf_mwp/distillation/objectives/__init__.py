"""What a student is asked for: one class each, planned on two examples, a loss and over what it is a mean."""

from .attention_maps import AttentionMaps
from .embedding_outputs import EmbeddingOutputs
from .hard_labels import HardLabels
from .hidden_states import HiddenStates
from .layer_flow import LayerFlow
from .layer_objective import LayerObjective
from .objective import Objective
from .prediction_objective import PredictionObjective
from .soft_labels import SoftLabels


__all__ = [
    "AttentionMaps",
    "EmbeddingOutputs",
    "HardLabels",
    "HiddenStates",
    "LayerFlow",
    "LayerObjective",
    "Objective",
    "PredictionObjective",
    "SoftLabels",
]

"""Training objectives of a student. Each is set up on two examples and returns the parts of its loss."""

from .layers.attention_maps import AttentionMaps
from .layers.attention_relations import AttentionRelations
from .layers.context_relations import ContextRelations
from .layers.embedding_outputs import EmbeddingOutputs
from .layers.fsp import FSP
from .layers.hidden_states import HiddenStates
from .layers.layer_objective import LayerObjective
from .layers.pkd import PKD
from .objective import Objective
from .predictions.dkd import DKD
from .predictions.hard_labels import HardLabels
from .predictions.prediction_objective import PredictionObjective
from .predictions.soft_labels import SoftLabels
from .predictions.teacher_values import TeacherValues


__all__ = [
    "AttentionMaps",
    "AttentionRelations",
    "ContextRelations",
    "DKD",
    "EmbeddingOutputs",
    "HardLabels",
    "HiddenStates",
    "FSP",
    "LayerObjective",
    "Objective",
    "PKD",
    "PredictionObjective",
    "SoftLabels",
    "TeacherValues",
]

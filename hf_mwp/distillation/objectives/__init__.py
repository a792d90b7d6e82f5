"""What a student is asked for: one class each, planned on two examples, a loss and over what it is a mean."""

from .layers.attention_maps import AttentionMaps
from .layers.attention_relations import AttentionRelations
from .layers.context_relations import ContextRelations
from .layers.embedding_outputs import EmbeddingOutputs
from .layers.hidden_states import HiddenStates
from .layers.layer_flow import LayerFlow
from .layers.layer_objective import LayerObjective
from .layers.patient_states import PatientStates
from .objective import Objective
from .predictions.decoupled_labels import DecoupledLabels
from .predictions.hard_labels import HardLabels
from .predictions.prediction_objective import PredictionObjective
from .predictions.soft_labels import SoftLabels
from .predictions.teacher_values import TeacherValues


__all__ = [
    "AttentionMaps",
    "AttentionRelations",
    "ContextRelations",
    "DecoupledLabels",
    "EmbeddingOutputs",
    "HardLabels",
    "HiddenStates",
    "LayerFlow",
    "LayerObjective",
    "Objective",
    "PatientStates",
    "PredictionObjective",
    "SoftLabels",
    "TeacherValues",
]

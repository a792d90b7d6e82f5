"""What a student is asked for: one class each, planned on two examples, a loss and over what it is a mean."""

from .attention_maps import AttentionMaps
from .attention_relations import AttentionRelations
from .context_relations import ContextRelations
from .decoupled_labels import DecoupledLabels
from .embedding_outputs import EmbeddingOutputs
from .hard_labels import HardLabels
from .hidden_states import HiddenStates
from .layer_flow import LayerFlow
from .layer_objective import LayerObjective
from .objective import Objective
from .patient_states import PatientStates
from .prediction_objective import PredictionObjective
from .soft_labels import SoftLabels


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
]

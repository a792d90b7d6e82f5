"""Objectives of a student: set up on two examples; a loss, and the number of items that it is a mean over."""

from .attention import AttentionMaps, AttentionRelations
from .context_relations import ContextRelations
from .hidden_states import FSP, PKD, EmbeddingOutputs, HiddenStates
from .layer_objective import LayerObjective
from .objective import Objective
from .predictions import DKD, HardLabels, PredictionObjective, SoftLabels, TeacherValues


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

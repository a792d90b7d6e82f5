"""Training objectives of a student. Each is set up on a few examples and returns the parts of its loss."""

from ...lazy_names import lazy_names


_NAMES = {
    "layers.attention_maps": ("AttentionMaps",),
    "layers.attention_relations": ("AttentionRelations",),
    "layers.context_relations": ("ContextRelations",),
    "layers.embedding_outputs": ("EmbeddingOutputs",),
    "layers.fsp": ("FSP",),
    "layers.hidden_states": ("HiddenStates",),
    "layers.layer_objective": ("LayerObjective",),
    "layers.pkd": ("PKD",),
    "objective": ("Objective",),
    "predictions.dkd": ("DKD",),
    "predictions.hard_labels": ("HardLabels",),
    "predictions.prediction_objective": ("PredictionObjective",),
    "predictions.soft_labels": ("SoftLabels",),
    "predictions.teacher_values": ("TeacherValues",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

"""Training objectives of a student. Each is set up on a few examples and returns the parts of its loss."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "attention_maps": ("AttentionMaps",),
    "attention_relations": ("AttentionRelations",),
    "context_relations": ("ContextRelations",),
    "embedding_outputs": ("EmbeddingOutputs",),
    "fsp": ("FSP",),
    "hidden_states": ("HiddenStates",),
    "layer_objective": ("LayerObjective",),
    "pkd": ("PKD",),
    "objective": ("Objective",),
    "dkd": ("DKD",),
    "hard_labels": ("HardLabels",),
    "prediction_objective": ("PredictionObjective",),
    "soft_labels": ("SoftLabels",),
    "teacher_values": ("TeacherValues",),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

"""Preparation of model folders (weights, processor, card) and their upload to the Hub."""

from hf_mwp.utils.lazy_names import lazy_names


_NAMES = {
    "model_card": ("ModelFigures", "TrainingStage", "build_model_card", "model_record"),
    "model_folder": ("make_model_folder", "with_pooling_layer", "write_model_folder"),
    "push_solver": ("Publication", "open_repository", "push_solver_to_hub", "push_trained_model"),
    "trained_model": ("CardFields", "push_trainer"),
}
__all__, __getattr__, __dir__ = lazy_names(__name__, _NAMES)

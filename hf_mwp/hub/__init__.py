"""Preparation of model folders (weights, processor, card) and their upload to the Hub."""

from ..lazy_names import lazy_names


_MODULES = {
    "ModelFigures": "model_card",
    "Publication": "push_solver",
    "TrainingStage": "model_card",
    "build_model_card": "model_card",
    "make_model_folder": "model_folder",
    "model_record": "model_card",
    "push_solver_to_hub": "push_solver",
    "push_trained_model": "push_solver",
    "with_pooling_layer": "model_folder",
    "write_model_folder": "model_folder",
}
__all__ = sorted(_MODULES)
__getattr__, __dir__ = lazy_names(__name__, _MODULES)

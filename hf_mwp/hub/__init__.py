"""What the Hub gets: folders with weights, processor and card."""

from .encoder_pooling import with_pooling_layer
from .model_card import ModelFigures, TrainingStage, build_model_card
from .model_folder import make_model_folder, write_model_folder


__all__ = [
    "ModelFigures",
    "TrainingStage",
    "build_model_card",
    "make_model_folder",
    "with_pooling_layer",
    "write_model_folder",
]

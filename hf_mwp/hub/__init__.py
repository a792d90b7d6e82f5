"""What the Hub gets: folders with weights, processor and card."""

from .encoder_pooling import with_pooling_layer
from .model_card import ModelFigures, TrainingStage, build_model_card
from .model_folder import write_model_folder


__all__ = ["ModelFigures", "TrainingStage", "build_model_card", "with_pooling_layer", "write_model_folder"]

"""The objectives that a [`DistillationConfig`] names."""

from __future__ import annotations

from ..distillation.objectives import EmbeddingOutputs, HardLabels, LayerObjective, Objective, SoftLabels
from .distillation_config import HIDDEN_LOSSES, DistillationConfig


def default_objectives(config: DistillationConfig) -> list[Objective]:
    """
    The objectives that make up the loss of a config, those without weight left out.

    Args:
        config ([`DistillationConfig`]): Its fields under "Prediction" and "Features".
    """
    objectives: list[Objective] = []
    soft = config.prediction_weight * config.soft_label_weight
    hard = config.prediction_weight * (1 - config.soft_label_weight)
    if soft:
        objectives.append(SoftLabels(config.temperature, config.scale_by_square, soft))
    if hard:
        objectives.append(HardLabels(hard))
    if config.hidden_loss is not None:
        objectives.append(_hidden_objective(config))
    if config.embedding_weight:
        objectives.append(EmbeddingOutputs(weight=config.embedding_weight))
    return objectives


def _hidden_objective(config: DistillationConfig) -> LayerObjective:
    objective = HIDDEN_LOSSES[config.hidden_loss](
        name="hidden", layer_mapping=config.layer_mapping, layer_weights=config.hidden_weights
    )
    objective.use_bottlenecks = config.use_bottlenecks
    return objective


__all__ = ["default_objectives"]

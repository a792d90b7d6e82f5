"""Default objectives of a [`DistillationConfig`]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transformers import PreTrainedModel

from ...distillation.objectives import EmbeddingOutputs, HardLabels, Objective
from .distillation_config import HIDDEN_LOSSES, PREDICTION_LOSSES, DistillationConfig


def default_objectives(config: DistillationConfig) -> list[Objective]:
    """Return the objectives for the losses in a config. Losses with weight 0 are left out."""
    objectives: list[Objective] = []
    soft = config.prediction_weight * config.soft_label_weight
    hard = config.prediction_weight * (1 - config.soft_label_weight)
    if soft:
        options: dict[str, Any] = {"weight": soft}
        if config.prediction_loss != "mse":
            options |= {"temperature": config.temperature, "scale_by_square": config.scale_by_square}
        if config.prediction_loss == "kd":
            options |= {"direction": config.kl_direction, "skew_alpha": config.skew_alpha}
        objectives.append(PREDICTION_LOSSES[config.prediction_loss](**options))
    if hard:
        objectives.append(HardLabels(hard))
    names = [] if config.hidden_loss is None else config.hidden_loss.split("+")
    for stack, mapping in config.mappings.items():
        prefix, options = "", {}
        if stack == "decoder":
            prefix, options = "decoder_", {"stack": stack, "decoder_mask": config.decoder_mask}
        for name in names:
            objective = HIDDEN_LOSSES[name](
                name=prefix + ("hidden" if len(names) == 1 else name),
                layer_mapping=mapping,
                layer_weights=config.hidden_weights,
                **options,
                **({"pool_statistics": True} if name == "cka" and config.pool_statistics else {}),
            )
            # Objectives that compare no hidden states ignore this attribute.
            objective.use_bottlenecks = config.use_bottlenecks
            objectives.append(objective)
        if config.embedding_weight:
            objectives.append(EmbeddingOutputs(f"{prefix}embedding", weight=config.embedding_weight, **options))
    return objectives


def show_attention(objectives: Sequence[Objective], *models: PreTrainedModel) -> None:
    """Switch models to eager attention, which returns attention matrices, if an objective needs these matrices."""
    if any("output_attentions" in objective.options for objective in objectives):
        for model in models:
            model.set_attn_implementation("eager")

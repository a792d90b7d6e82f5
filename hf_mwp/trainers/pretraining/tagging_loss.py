"""The loss of part-of-speech tagging, with weights of classes of tags."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.nn.functional import cross_entropy

from ...problems.tagging.pos_classes import tag_classes


class TaggingLoss:
    """
    Weighted mean cross entropy over the tagged tokens; the model's own loss where all classes weigh the same.

    Args:
        config (`PreTrainedConfig`): Of the model: the labels of its tagging head, and whose they are.
        class_weights (`Mapping[str, float]`, *optional*): See [`PreTrainingConfig`].

    Raises:
        ValueError: nobody knows what classes the tags belong to.
    """

    def __init__(self, config: Any, class_weights: Mapping[str, float] | None = None) -> None:
        self.weights: torch.Tensor | None = None
        if not class_weights or all(weight == 1 for weight in class_weights.values()):
            return
        if config.pos_labels is None or not (classes := tag_classes(config.pos_tagger or "")):
            raise ValueError(
                f"`pos_class_weights` needs to know what class a tag belongs to, but the tag set of "
                f"{config.pos_tagger or 'the tagger'} is not known: leave them away."
            )
        weights = [float(class_weights.get(classes.get(label[2:]), 1.0)) for label in config.pos_labels]
        self.weights = torch.tensor(weights)

    def count(self, labels: torch.Tensor) -> torch.Tensor:
        """Over how many tokens, or what sum of weights, the mean is taken; no device is waited for."""
        labelled = labels.ne(-100)
        if self.weights is None:
            return labelled.sum()
        self.weights = self.weights.to(labels.device)
        return (self.weights[labels.clamp(min=0)] * labelled).sum()

    def __call__(self, outputs: Any, labels: torch.Tensor) -> torch.Tensor:
        """The loss of a model's outputs for labels `(batch, length)`, -100 where there is none."""
        if self.weights is None:
            return outputs["pos_loss"]
        count = self.count(labels)
        logits = outputs["pos_logits"].flatten(0, 1).float()
        total = cross_entropy(logits, labels.flatten(), weight=self.weights, reduction="sum")
        return total / count.clamp(min=1e-9)

"""Trainer that fine-tunes sequence-to-sequence models."""

from typing import Any

import torch
from transformers import Seq2SeqTrainer

from ..base_trainer import BaseTrainer
from .generation_evaluation import GenerationEvaluation
from .seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig


class Seq2SeqFineTuningTrainer(GenerationEvaluation, BaseTrainer, Seq2SeqTrainer):
    """
    Trainer that fine-tunes a sequence-to-sequence model, for example a teacher. The loss is the mean over all labelled
    tokens of a step, independent of the number of batches and processes.

    Args:
        model, text_metrics, kwargs: See [`GenerationEvaluation`]. All but the model are keyword arguments.
        args ([`Seq2SeqFineTuningConfig`], *optional*): Arguments.
    """

    config_class = Seq2SeqFineTuningConfig

    def _num_items(self, batch: dict[str, Any]) -> dict[str, torch.Tensor | int | None]:
        return {"loss": (batch["labels"] != -100).sum()} if "labels" in batch else {}

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        """Return the loss, weighted in training by the batch's share of the step's labelled tokens."""
        loss, outputs = super().compute_loss(model, dict(inputs), return_outputs=True)
        if model.training and num_items_in_batch is not None:
            loss = self._weight_by_items({"loss": loss}, inputs, num_items_in_batch)["loss"]
        return (loss, outputs) if return_outputs else loss

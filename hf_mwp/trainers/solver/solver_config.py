"""Arguments of [`SolverTrainer`]."""

from __future__ import annotations

from dataclasses import dataclass

from ..base_config import BaseConfig, setting


@dataclass
class SolverTrainingConfig(BaseConfig):
    r"""
    Arguments of [`SolverTrainer`]: those of [`BaseConfig`], with other defaults.

    Ming et al. fine-tune with learning rates of 1e-5 for the encoder, 1e-4 for the decoder, for 100 epochs; 1e-4 to
    2e-4 for the encoder reaches its best on a small data set in about ten epochs, 4e-4 to 5e-4 from random weights.
    The loss is the sum over the nodes of a tree, averaged over problems, so learning rates go with that.
    """

    learning_rate: float = setting(1e-4, "Learning rate of the encoder.")
    decoder_learning_rate: float | None = setting(1e-3, "Learning rate of the decoder; that of the encoder if None.")
    per_device_train_batch_size: int = setting(32, "Problems per device and step.")
    metric_for_best_model: str | None = setting(
        "answer_accuracy", "Metric that chooses the best checkpoint and stops early."
    )

"""Arguments of [`SolverTrainer`]."""

from __future__ import annotations

from dataclasses import dataclass

from ..base_config import BaseConfig, setting


@dataclass
class SolverTrainingConfig(BaseConfig):
    r"""
    Arguments of [`SolverTrainer`]: all of `TrainingArguments`, those of [`BaseConfig`] for solvers, and these
    defaults:

    Args:
        learning_rate (`float`, *optional*, defaults to 1e-4):
            Learning rate of the encoder. Ming et al. fine-tune with 1e-5 for 100 epochs; 1e-4 to 2e-4 reaches its best
            on a small data set in about ten epochs. From random weights 4e-4 to 5e-4 is right.
        decoder_learning_rate (`float`, *optional*, defaults to 1e-3):
            Learning rate of the decoder, which always starts from random weights; Ming et al. use ten times that of
            the encoder as well (1e-4).

    The model's loss is the sum over the nodes of a tree, averaged over the problems of a batch, so learning rates go
    with that. Dropout is a matter of the models: `hidden_dropout_prob`, `attention_probs_dropout_prob` of the encoder
    and `dropout` of the decoder's config (0.1 for few epochs, up to 0.5 for 60 and more).
    """

    learning_rate: float = setting(1e-4, "Learning rate of the encoder.")
    decoder_learning_rate: float | None = setting(1e-3, "Learning rate of the decoder; that of the encoder if None.")
    per_device_train_batch_size: int = setting(32, "Problems per device and step.")
    metric_for_best_model: str | None = setting(
        "answer_accuracy", "Metric that chooses the best checkpoint and stops early."
    )

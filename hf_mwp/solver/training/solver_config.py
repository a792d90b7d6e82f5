"""Arguments of [`SolverTrainer`]."""

from dataclasses import dataclass

from hf_mwp.compress.trainers.base_config import BaseConfig, setting


@dataclass
class SolverTrainingConfig(BaseConfig):
    r"""
    Arguments of [`SolverTrainer`]: the arguments of [`BaseConfig`], with different defaults.

    Ming et al. (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI 2025) fine-tune for
    100 epochs with learning rates of 1e-5 (encoder) and 1e-4 (decoder). On a small dataset about ten epochs suffice
    with 1e-4 to 2e-4 for a pretrained encoder, or 4e-4 to 5e-4 for random weights. Learning rates depend on the scale
    of the loss, which is summed over the nodes of a tree and averaged over problems.
    """

    learning_rate: float = setting(1e-4, "Learning rate of the encoder.")
    decoder_learning_rate: float | None = setting(1e-3, "Learning rate of the decoder; the encoder's if None.")
    per_device_train_batch_size: int = setting(32, "Problems per device and step.")
    metric_for_best_model: str | None = setting("answer_accuracy", "Metric for best checkpoint and early stopping.")

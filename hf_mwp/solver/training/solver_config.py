"""Arguments of [`SolverTrainer`]."""

from dataclasses import dataclass
from typing import Any

from hf_mwp.compress.trainers.base_config import BaseConfig, setting
from hf_mwp.solver.metrics.matching import ANSWER_MATCHES
from hf_mwp.utils.checks import check_at_least_one, check_not_negative


def answer_match_setting() -> Any:
    """Declare `answer_match`, the target value of evaluations that compare answers."""
    return setting(
        "annotated",
        "Target value: the annotated answer (integers must be equal, other values within a relative 1e-4), or the "
        "value of the target equation (absolute tolerance).",
        choices=list(ANSWER_MATCHES),
    )


@dataclass
class SolverTrainingConfig(BaseConfig):
    r"""
    Arguments of [`SolverTrainer`]: the arguments of [`BaseConfig`], with different defaults, learning rates of a
    solver's encoder and decoder, and decoding in evaluations. Each field is described by its `help`.

    Ming et al. (A Compact Model for Mathematics Problem Representations Distilled from BERT, AAAI 2025) fine-tune for
    100 epochs with learning rates of 1e-5 (encoder) and 1e-4 (decoder). On a small dataset about ten epochs suffice
    with 1e-4 to 2e-4 for a pretrained encoder, or 4e-4 to 5e-4 for random weights. Learning rates depend on the scale
    of the loss, which is summed over the nodes of a tree and averaged over problems. `num_beams=1` evaluates three to
    eight times faster than the 5 beams of the papers and ranks checkpoints nearly as well.
    """

    learning_rate: float = setting(1e-4, "Learning rate of the encoder.")
    per_device_train_batch_size: int = setting(32, "Problems per device and step.")
    metric_for_best_model: str | None = setting("answer_accuracy", "Metric for best checkpoint and early stopping.")

    decoder_learning_rate: float | None = setting(1e-3, "Learning rate of the decoder; the encoder's if None.")
    decoder_weight_decay: float | None = setting(None, "Weight decay of a solver's decoder; the encoder's if None.")

    num_beams: int = setting(1, "Number of beams when a solver is evaluated.")
    max_decode_length: int | None = setting(None, "Maximum symbols in an expression; the decoder's limit if None.")
    answer_match: str = answer_match_setting()

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "num_beams", "max_decode_length")
        check_not_negative(self, "decoder_learning_rate", "decoder_weight_decay")

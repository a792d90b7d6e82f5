"""Trainer that fine-tunes sequence-to-sequence models."""

from transformers import Seq2SeqTrainer

from .base_trainer import BaseTrainer
from .generation_evaluation import GenerationEvaluation
from .seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig


class Seq2SeqFineTuningTrainer(GenerationEvaluation, BaseTrainer, Seq2SeqTrainer):
    """
    Trainer that fine-tunes a sequence-to-sequence model, for example a teacher. The loss is the mean over all labelled
    tokens of a step, independent of the number of batches and processes.

    Args:
        model, text_metrics, kwargs: See [`GenerationEvaluation`]. Arguments by position are in the order of `Trainer`.
        args ([`Seq2SeqFineTuningConfig`], *optional*): Arguments.
    """

    config_class = Seq2SeqFineTuningConfig

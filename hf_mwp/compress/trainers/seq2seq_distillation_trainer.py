"""Trainer that distils sequence-to-sequence models."""

from transformers import Seq2SeqTrainer

from .distillation_trainer import DistillationTrainer
from .generation_evaluation import GenerationEvaluation
from .seq2seq_distillation_config import Seq2SeqDistillationConfig


class Seq2SeqDistillationTrainer(GenerationEvaluation, DistillationTrainer, Seq2SeqTrainer):
    """
    Trainer that distils a frozen teacher into a sequence-to-sequence student (BART, mBART, Marian, Pegasus, M2M100,
    T5, ...) with the same vocabulary, and evaluates the texts that the student generates.

    Args:
        model (`PreTrainedModel`): The student, for example from [`~distillation.make_seq2seq_student`].
        args ([`Seq2SeqDistillationConfig`], *optional*): Arguments.
        teacher_model, objectives, teacher_processing_class: See [`DistillationTrainer`].
        text_metrics, kwargs: See [`GenerationEvaluation`]. Arguments by position are as in [`DistillationTrainer`].

    Raises:
        ValueError: As [`DistillationTrainer`]; the student generates no texts, or its vocabulary differs from the
            teacher's.

    References:
        Improving Language Model Distillation through Hidden State Matching (ICLR 2025)
    """

    config_class = Seq2SeqDistillationConfig

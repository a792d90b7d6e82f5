"""Distillation of sequence-to-sequence models."""

from __future__ import annotations

from transformers import Seq2SeqTrainer

from ..seq2seq.generation_evaluation import GenerationEvaluation
from .distillation_trainer import DistillationTrainer
from .seq2seq_distillation_config import Seq2SeqDistillationConfig


class Seq2SeqDistillationTrainer(GenerationEvaluation, DistillationTrainer, Seq2SeqTrainer):
    """
    Trains a sequence-to-sequence student (BART, mBART, Marian, Pegasus, M2M100, T5, ...) to follow a frozen teacher of
    the same vocabulary, and evaluates it by the texts that it generates.

    Args:
        model (`PreTrainedModel`, *optional*): The student, for example of [`~distillation.make_seq2seq_student`].
        args ([`Seq2SeqDistillationConfig`], *optional*): Arguments.
        teacher_model, objectives, teacher_processing_class: See [`DistillationTrainer`].
        text_metrics, kwargs: See [`GenerationEvaluation`]; all but the model are keywords.

    Raises:
        ValueError: As [`DistillationTrainer`]; a student that generates no texts, or of another vocabulary than the
            teacher's.

    References:
        Improving Language Model Distillation through Hidden State Matching (ICLR 2025)

    Example:
        >>> trainer = Seq2SeqDistillationTrainer(
        ...     make_seq2seq_student(teacher, encoder_layers=3, decoder_layers=3, hidden_size=256),
        ...     teacher_model=teacher,
        ...     args=Seq2SeqDistillationConfig(output_dir="student", eval_strategy="epoch"),
        ...     train_dataset=pairs["train"],
        ...     eval_dataset=pairs["validation"],
        ...     processing_class=tokenizer,
        ... )
        >>> trainer.train()
        >>> trainer.evaluate()["eval_bleu"]
    """

    config_class = Seq2SeqDistillationConfig

    def __init__(self, model=None, *, args: Seq2SeqDistillationConfig | None = None, **kwargs) -> None:
        super().__init__(model, args=self._checked(args, Seq2SeqDistillationConfig), **kwargs)

"""Arguments of [`Seq2SeqFineTuningTrainer`]."""

from __future__ import annotations

from dataclasses import dataclass

from transformers import Seq2SeqTrainingArguments

from ..base_config import BaseConfig, setting


@dataclass
class Seq2SeqFineTuningConfig(BaseConfig, Seq2SeqTrainingArguments):
    r"""
    Arguments of [`Seq2SeqFineTuningTrainer`]: those of [`BaseConfig`] and of `Seq2SeqTrainingArguments`.
    `generation_num_beams` and `generation_max_length` are `num_beams` and `max_decode_length` unless they are given.

    Raises:
        TypeError, ValueError: As [`BaseConfig`].
    """

    predict_with_generate: bool = setting(True, "Generate texts in evaluations, and compare these with the labels.")
    max_decode_length: int | None = setting(
        128, "Tokens that a generated text may have; the limit of the model's generation config if None."
    )

    def __post_init__(self):
        super().__post_init__()
        if self.generation_num_beams is None:
            self.generation_num_beams = self.num_beams
        if self.generation_max_length is None:
            self.generation_max_length = self.max_decode_length

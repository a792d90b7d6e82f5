"""Arguments of [`Seq2SeqFineTuningTrainer`]."""

from dataclasses import dataclass

from transformers import Seq2SeqTrainingArguments

from ..base_config import BaseConfig, setting


@dataclass
class Seq2SeqFineTuningConfig(BaseConfig, Seq2SeqTrainingArguments):
    r"""
    Arguments of [`Seq2SeqFineTuningTrainer`]: the arguments of [`BaseConfig`] and `Seq2SeqTrainingArguments`.
    `generation_num_beams` defaults to `num_beams`, and `generation_max_length` to `max_decode_length`.
    """

    predict_with_generate: bool = setting(True, "Generate texts in evaluations and compare them with the labels.")
    max_decode_length: int | None = setting(128, "Maximum tokens in a generated text; the model's limit if None.")

    def __post_init__(self):
        super().__post_init__()
        if self.generation_num_beams is None:
            self.generation_num_beams = self.num_beams
        if self.generation_max_length is None:
            self.generation_max_length = self.max_decode_length

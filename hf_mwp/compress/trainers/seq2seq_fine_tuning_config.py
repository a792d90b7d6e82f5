"""Arguments of [`Seq2SeqFineTuningTrainer`]."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from transformers import Seq2SeqTrainingArguments

from hf_mwp.utils.checks import check_at_least_one

from .base_config import BaseConfig, setting


def num_beams_without_flag(config_class: type) -> type:
    """Let the constructor of a config accept `num_beams`, which is no option of `HfArgumentParser`: the arguments of
    data in Transformers' scripts for translation and summarization have an option of the same name."""
    generated: Callable[..., None] = config_class.__init__

    @wraps(generated)
    def init(self: Any, *args: Any, num_beams: int = 1, **kwargs: Any) -> None:
        self.num_beams = num_beams
        generated(self, *args, **kwargs)

    config_class.__init__ = init
    return config_class


def beams_setting() -> Any:
    """Declare `num_beams` for [`num_beams_without_flag`]."""
    metadata = {"help": "Number of beams of evaluations, `generation_num_beams`.", "only_in_commands": True}
    return field(default=1, init=False, metadata=metadata)


@num_beams_without_flag
@dataclass
class Seq2SeqFineTuningConfig(BaseConfig, Seq2SeqTrainingArguments):
    r"""
    Arguments of [`Seq2SeqFineTuningTrainer`]: the arguments of [`BaseConfig`] and `Seq2SeqTrainingArguments`.
    `generation_num_beams` defaults to `num_beams`, and `generation_max_length` to `max_decode_length`. `num_beams` is
    no option of `HfArgumentParser`, so that scripts may have an option of this name.
    """

    predict_with_generate: bool = setting(True, "Generate texts in evaluations and compare them with the labels.")
    num_beams: int = beams_setting()
    max_decode_length: int | None = setting(128, "Maximum tokens in a generated text; the model's limit if None.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "num_beams", "max_decode_length")
        if self.generation_num_beams is None:
            self.generation_num_beams = self.num_beams
        if self.generation_max_length is None:
            self.generation_max_length = self.max_decode_length

"""Arguments of trainers of sequence-to-sequence models that solve math word problems."""

from dataclasses import dataclass

from hf_mwp.compress.trainers.seq2seq_distillation_config import Seq2SeqDistillationConfig
from hf_mwp.compress.trainers.seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig, num_beams_without_flag

from .solver_config import answer_match_setting


@num_beams_without_flag
@dataclass
class MathSeq2SeqFineTuningConfig(Seq2SeqFineTuningConfig):
    r"""
    Arguments of [`Seq2SeqFineTuningTrainer`] for a model that generates equations: the arguments of
    [`Seq2SeqFineTuningConfig`], and the target value of evaluations.
    """

    answer_match: str = answer_match_setting()


@num_beams_without_flag
@dataclass
class MathSeq2SeqDistillationConfig(Seq2SeqDistillationConfig):
    r"""
    Arguments of [`Seq2SeqDistillationTrainer`] for a model that generates equations: the arguments of
    [`Seq2SeqDistillationConfig`], and the target value of evaluations.
    """

    answer_match: str = answer_match_setting()

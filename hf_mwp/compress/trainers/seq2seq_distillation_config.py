"""Arguments of [`Seq2SeqDistillationTrainer`]."""

from dataclasses import dataclass

from .base_config import setting
from .distillation_config import DistillationConfig
from .seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig, beams_setting, num_beams_without_flag


@num_beams_without_flag
@dataclass
class Seq2SeqDistillationConfig(DistillationConfig, Seq2SeqFineTuningConfig):
    r"""
    Arguments of [`Seq2SeqDistillationTrainer`]: the arguments of [`DistillationConfig`] and
    [`Seq2SeqFineTuningConfig`], with the values of Dasgupta and Cohn (Improving Language Model Distillation through
    Hidden State Matching, ICLR 2025): the loss on labels, the KL divergence at temperature 1 and the loss on each pair
    of layers have weight 1.
    """

    num_beams: int = beams_setting()
    max_decode_length: int | None = setting(128, "Maximum tokens in a generated text; the model's limit if None.")
    temperature: float = setting(1.0, "Temperature that softens the probabilities of teacher and student.")
    # With `soft_label_weight=0.5`, the losses on labels and on the teacher's probabilities have weight 1 each.
    prediction_weight: float = setting(2.0, "Weight of the prediction loss, soft and hard labels together.")
    hidden_loss: str | None = setting("cka", "Loss on layers, see `DistillationConfig`.")
    layer_mapping: str = setting("alternating", "alternating, uniform, first, last, or pairs such as 0:0,1:2,2:4.")
    embedding_weight: float = setting(0.0, "Weight of a loss on embedding outputs; alternating compares them anyway.")

    compares_decoder = True

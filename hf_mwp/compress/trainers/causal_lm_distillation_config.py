"""Arguments of [`DistillationTrainer`] for causal language models."""

from dataclasses import dataclass

from hf_mwp.utils.checks import check_at_least_one

from .base_config import setting
from .distillation_config import DistillationConfig


@dataclass
class CausalLMDistillationConfig(DistillationConfig):
    r"""
    Arguments of [`DistillationTrainer`] for causal language models: the arguments of [`DistillationConfig`] and those
    of their rows ([`tokenize_causal_rows`]), with the values of Dasgupta and Cohn (Improving Language Model
    Distillation through Hidden State Matching, ICLR 2025): the loss on labels, the KL divergence at temperature 1 and
    the CKA loss on each pair of layers have weight 1.

    These defaults differ from [`BaseConfig`]: `per_device_train_batch_size=8`, `per_device_eval_batch_size=8` (logits
    over a vocabulary need much memory), `max_grad_norm=1.0` (as in `TrainingArguments`).

    Raises:
        ValueError: As [`DistillationConfig`]; `max_length` or `cache_top_k` is below 1, or `packing` has no
            `max_length`.
    """

    per_device_train_batch_size: int = setting(8, "Examples per device and step.")
    per_device_eval_batch_size: int = setting(8, "Examples per device while evaluating, or while a cache is filled.")
    max_grad_norm: float = setting(1.0, "Maximum gradient norm; 0 turns clipping off.")
    temperature: float = setting(1.0, "Temperature that softens the probabilities of teacher and student.")
    # With `soft_label_weight=0.5`, the losses on labels and on the teacher's probabilities have weight 1 each.
    prediction_weight: float = setting(2.0, "Weight of the prediction loss, soft and hard labels together.")
    hidden_loss: str | None = setting("cka", "Loss on layers, see `DistillationConfig`.")
    layer_mapping: str = setting("alternating", "alternating, uniform, first, last, or pairs such as 0:0,1:2,2:4.")
    embedding_weight: float = setting(0.0, "Weight of a loss on embedding outputs; alternating compares them anyway.")

    cache_top_k: int = setting(
        64,
        "Most likely tokens (the label among them) whose probabilities a teacher cache stores for each position, in "
        "6 * k + 2 bytes.",
    )
    max_length: int | None = setting(
        None, "Tokens at which longer rows are truncated; if None, rows longer than the model's limit are refused."
    )
    packing: bool = setting(False, "Join training rows to sequences of `max_length` tokens, without padding.")
    completion_only_loss: bool | None = setting(
        None, "Compute the loss on completions only; if None, for rows with `prompt` and `completion`."
    )

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "cache_top_k", "max_length")
        if self.packing and self.max_length is None:
            raise ValueError("`packing` joins rows to sequences of `max_length` tokens. Set `max_length`.")

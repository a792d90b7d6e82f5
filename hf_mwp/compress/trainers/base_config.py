"""Arguments shared by all trainers."""

import math
from dataclasses import dataclass, field
from typing import Any, Self

import torch
from transformers import TrainingArguments
from transformers.trainer_utils import HubStrategy
from transformers.utils import logging

from hf_mwp.utils.checks import check_at_least_one, check_not_negative, check_options, check_positive


logger = logging.get_logger(__name__)


def setting(default: Any, help: str, **metadata: Any) -> Any:
    """Declare a config field with its `--help` text. A list is copied for each config."""
    metadata = {"help": help, **metadata}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def _has_bf16_instructions() -> bool:
    """Return whether PyTorch multiplies bf16 matrices fast on this processor, or whether that is unknown."""
    return not torch.backends.mkldnn.is_available() or torch.ops.mkldnn._is_mkldnn_bf16_supported()


@dataclass
class BaseConfig(TrainingArguments):
    r"""
    Arguments of all trainers: `TrainingArguments` and early stopping. Each field is described by its `help`.

    These defaults differ from `TrainingArguments`: `train_sampling_strategy="group_by_length"` (without it about half
    of the computation is padding; examples that are not sequences are shuffled), `warmup_steps=0.1` (a share of the
    steps), `max_grad_norm=5.0` (the loss is a sum over tree nodes, so its gradients are large),
    `per_device_eval_batch_size=64` (decoding needs little memory), `logging_steps=50`, `hub_strategy="end"`.

    Raises:
        ValueError: A value is out of range, or options exclude each other.
    """

    train_sampling_strategy: str = setting(
        "group_by_length",
        "Order of the training examples.",
        choices=["random", "sequential", "group_by_length", "batch_rebalance"],
    )
    per_device_eval_batch_size: int = setting(64, "Examples per device while evaluating.")
    warmup_steps: float = setting(0.1, "Steps of linear warm-up; below 1, the share of all training steps.")
    max_grad_norm: float = setting(5.0, "Maximum gradient norm; 0 turns clipping off.")
    logging_steps: float = setting(50, "Number of steps between logs; below 1, a share of all training steps.")

    hub_strategy: str = setting("end", "When --push_to_hub uploads; only at the end, as checkpoints contain pickles.")

    early_stopping_patience: int | None = setting(None, "Stop after this many evaluations without improvement.")
    early_stopping_threshold: float = setting(0.0, "Minimum difference that counts as an improvement.")

    def __post_init__(self):
        check_options(self, TrainingArguments)
        metric = self.metric_for_best_model
        greater_is_better = self.greater_is_better
        super().__post_init__()
        if not torch.accelerator.is_available():
            # With the default of `TrainingArguments` the loader would warn that memory cannot be pinned.
            self.dataloader_pin_memory = False
        if self.n_gpu > 1:
            # `DataParallel` would split index tensors of decoders like batches.
            logger.warning(f"Only one of {self.n_gpu} GPUs is used. Start with `accelerate launch` to use all.")
            self._n_gpu = 1
        if self.bf16 and self.device.type == "cpu" and not _has_bf16_instructions():
            logger.warning("This processor has no bf16 instructions, so `bf16` makes training many times slower.")
        if metric is None:
            # `TrainingArguments` would set the loss. The trainer chooses, because the metrics depend on the model.
            self.metric_for_best_model = None
            self.greater_is_better = greater_is_better
        check_at_least_one(self, "per_device_train_batch_size", "per_device_eval_batch_size")
        check_at_least_one(self, "gradient_accumulation_steps", "early_stopping_patience")
        check_not_negative(self, "learning_rate", "weight_decay", "max_grad_norm", "warmup_steps")
        check_not_negative(self, "early_stopping_threshold")
        check_positive(self, "logging_steps", "eval_steps", "save_steps")
        trains_epochs = self.max_steps == -1 and 0 < self.num_train_epochs < math.inf
        if self.max_steps < 1 and not trains_epochs:
            values = f"{self.max_steps} and {self.num_train_epochs}"
            raise ValueError(f"Set `max_steps` to at least 1, or to -1 and `num_train_epochs` above 0, got {values}.")
        self.check_hub_strategy()
        if self.early_stopping_patience is not None and self.eval_strategy == "no":
            raise ValueError("`early_stopping_patience` needs evaluations during training. Set `eval_strategy`.")

    def check_hub_strategy(self) -> None:
        """Raise `ValueError` if checkpoints, which contain pickle files and the optimiser, would be uploaded."""
        strategy = HubStrategy(self.hub_strategy)
        if self.push_to_hub and strategy != HubStrategy.END:
            fault = f"got {strategy.value!r}: checkpoints contain pickles"
            raise ValueError(f"`push_to_hub` needs `hub_strategy='end'`, {fault}.")

    def set_push_to_hub(self, model_id, strategy="end", *args, **kwargs) -> Self:
        """Set the arguments of the upload, as `TrainingArguments` does. The only `strategy` is `"end"`."""
        super().set_push_to_hub(model_id, strategy, *args, **kwargs)
        self.check_hub_strategy()
        return self

    def check_joint_metrics(self) -> None:
        """Raise `ValueError` if predictions would not be joined for the metrics of answers or generated texts."""
        if self.batch_eval_metrics or not self.eval_do_concat_batches:
            remedy = "Set `batch_eval_metrics=False` and `eval_do_concat_batches=True`."
            raise ValueError(f"Answers and generated texts are compared after all batches. {remedy}")

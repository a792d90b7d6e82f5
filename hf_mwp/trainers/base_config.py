"""Arguments that the trainers for solvers share."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from transformers import TrainingArguments

from .argument_checks import check_packages, check_types, check_values


ANSWER_RULES = ("annotated", "peers")


@dataclass
class BaseConfig(TrainingArguments):
    r"""
    What the configs of all trainers have in common: learning rates of a solver's two parts, how its evaluation
    decodes, early stopping. Each field has its `help`; besides:

    Args:
        decoder_learning_rate (`float`, *optional*), decoder_weight_decay (`float`, *optional*):
            `learning_rate` and `weight_decay` themselves are the encoder's. Biases and layer norms never decay.
        num_beams (`int`, *optional*, defaults to 1):
            The papers report beam 5; 1, greedy, is three to eight times faster and ranks checkpoints nearly as well.
        max_decode_length (`int`, *optional*): By default the decoder's own `max_length`.
        answer_rule (`str`, *optional*, defaults to `"annotated"`): See [`metrics.answers_match`].
        write_predictions (`bool`, *optional*, defaults to `False`):
            To `predictions_{prefix}.jsonl`, with the reason of each failure; the next evaluation under the same prefix
            replaces the file.
        early_stopping_patience (`int`, *optional*), early_stopping_threshold (`float`, *optional*, defaults to 0.0):
            Evaluations without a better `metric_for_best_model`, and how much better it must be to count.

    These defaults differ from `TrainingArguments`: `train_sampling_strategy="group_by_length"` (texts of a batch have
    like lengths: without it about half of the computation is padding), `warmup_steps=0.1` (a share of the steps),
    `max_grad_norm=5.0` (the norm of a sum over tree nodes is large), `per_device_eval_batch_size=64` (decoding costs
    little memory), `logging_steps=50`.
    """

    train_sampling_strategy: str = field(
        default="group_by_length",
        metadata={
            "help": "How training examples are ordered.",
            "choices": ["random", "sequential", "group_by_length", "batch_rebalance"],
        },
    )
    per_device_eval_batch_size: int = field(default=64, metadata={"help": "Examples per device while evaluating."})
    warmup_steps: float = field(
        default=0.1, metadata={"help": "Steps of linear warm-up; below 1, the share of all training steps."}
    )
    max_grad_norm: float = field(default=5.0, metadata={"help": "Largest norm of the gradient; 0 does not clip."})
    logging_steps: float = field(
        default=50, metadata={"help": "Log every so many steps; below 1, the share of all training steps."}
    )

    decoder_learning_rate: float | None = field(
        default=None, metadata={"help": "Learning rate of a solver's decoder; that of the encoder if not given."}
    )
    decoder_weight_decay: float | None = field(
        default=None, metadata={"help": "Weight decay of a solver's decoder; that of the encoder if not given."}
    )

    num_beams: int = field(default=1, metadata={"help": "Beams of the decoding while evaluating a solver."})
    max_decode_length: int | None = field(
        default=None,
        metadata={"help": "Symbols that a decoded expression may have; the decoder's own limit if not given."},
    )
    answer_rule: str = field(
        default="annotated",
        metadata={
            "help": "What counts as a right answer: the annotated answer (whole numbers equal, others up to a "
            "relative 1e-4), or, as the peers have it, the value of the target equation with an absolute one.",
            "choices": list(ANSWER_RULES),
        },
    )
    write_predictions: bool = field(
        default=False, metadata={"help": "Write each evaluation's predictions to a JSONL file in the output folder."}
    )

    early_stopping_patience: int | None = field(
        default=None,
        metadata={"help": "Stop after this many evaluations without an improvement; never if not given."},
    )
    early_stopping_threshold: float = field(
        default=0.0, metadata={"help": "How much better an evaluation must be to count as an improvement."}
    )

    def __post_init__(self):
        check_types(self)
        check_packages(self)
        metric, greater_is_better = self.metric_for_best_model, self.greater_is_better
        super().__post_init__()
        if not torch.accelerator.is_available():
            # The parent's default only makes the loader warn that nothing can be pinned.
            self.dataloader_pin_memory = False
        if metric is None:
            # The parent's answer would be the loss; which metric there is depends on the model, so the trainer
            # chooses.
            self.metric_for_best_model, self.greater_is_better = None, greater_is_better
        check_values(self)
        if self.answer_rule not in ANSWER_RULES:
            raise ValueError(f"`answer_rule` must be one of {list(ANSWER_RULES)}, got {self.answer_rule!r}.")
        if self.early_stopping_patience is not None and self.eval_strategy == "no":
            raise ValueError(
                '`early_stopping_patience` needs evaluations while training: set `eval_strategy` to "epoch" or '
                '"steps".'
            )

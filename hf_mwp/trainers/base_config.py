"""Arguments that the trainers for solvers share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import TrainingArguments

from ..options.checks import refuse
from .argument_checks import check_types, check_values


ANSWER_MATCHES = ("annotated", "equation_value")


def setting(default: Any, help: str, **metadata: Any) -> Any:
    """Declare a field of a config with its text for `--help`; a list is copied for each config."""
    metadata = {"help": help, **metadata}
    if isinstance(default, list):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


@dataclass
class BaseConfig(TrainingArguments):
    r"""
    Arguments of all trainers: learning rates of a solver's two parts, decoding in evaluations, early stopping. Each
    field is described by its `help`. `num_beams=1` is three to eight times faster than the papers' 5, and ranks
    checkpoints nearly as well.

    These defaults differ from `TrainingArguments`: `train_sampling_strategy="group_by_length"` (without it about half
    of the computation is padding; examples that are no sequences come in random order), `warmup_steps=0.1` (a share of
    the steps), `max_grad_norm=5.0` (the norm of a sum over tree nodes is large), `per_device_eval_batch_size=64`
    (decoding costs little memory), `logging_steps=50`, `hub_strategy="end"`.

    Raises:
        TypeError: a value of the wrong kind.
        ValueError: a value out of range, or options that exclude each other.
    """

    train_sampling_strategy: str = setting(
        "group_by_length",
        "How training examples are ordered.",
        choices=["random", "sequential", "group_by_length", "batch_rebalance"],
    )
    per_device_eval_batch_size: int = setting(64, "Examples per device while evaluating.")
    warmup_steps: float = setting(0.1, "Steps of linear warm-up; below 1, the share of all training steps.")
    max_grad_norm: float = setting(5.0, "Largest norm of the gradient; 0 does not clip.")
    logging_steps: float = setting(50, "Log every so many steps; below 1, the share of all training steps.")

    decoder_learning_rate: float | None = setting(
        None, "Learning rate of a solver's decoder; that of the encoder if not given."
    )
    decoder_weight_decay: float | None = setting(
        None, "Weight decay of a solver's decoder; that of the encoder if not given."
    )

    num_beams: int = setting(1, "Beams of the decoding while evaluating a solver.")
    max_decode_length: int | None = setting(
        None, "Symbols that a decoded expression may have; the decoder's own limit if not given."
    )
    answer_match: str = setting(
        "annotated",
        "What counts as a right answer: the annotated answer (whole numbers equal, others up to a relative 1e-4), or "
        "the value of the target equation with an absolute one.",
        choices=list(ANSWER_MATCHES),
    )
    hub_strategy: str = setting("end", "When --push_to_hub uploads: at the end only, since checkpoints hold pickles.")
    write_predictions: bool = setting(
        False, "Write each evaluation's predictions, with reasons of failures, to predictions_PREFIX.jsonl."
    )

    early_stopping_patience: int | None = setting(
        None, "Stop after this many evaluations without an improvement; never if not given."
    )
    early_stopping_threshold: float = setting(0.0, "How much better an evaluation must be to count as an improvement.")

    def __post_init__(self):
        check_types(self)
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
        hub_strategy = getattr(self.hub_strategy, "value", self.hub_strategy)
        refuse(
            {
                f"`push_to_hub` needs `hub_strategy='end'`, got {hub_strategy!r}: checkpoints hold pickles.": (
                    self.push_to_hub and hub_strategy != "end"
                ),
                "`early_stopping_patience` needs evaluations while training: set `eval_strategy`.": (
                    self.early_stopping_patience is not None and self.eval_strategy == "no"
                ),
            }
        )

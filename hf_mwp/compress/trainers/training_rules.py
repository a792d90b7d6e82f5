"""Base class of the rules by which trainers train and evaluate a kind of model."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from torch import Tensor, nn
from transformers import Trainer
from transformers.trainer_utils import EvalLoopOutput

from .base_config import BaseConfig


class TrainingRules:
    """
    Rows, learning rates and evaluation of one kind of model, for [`BaseTrainer`]. This base class is for models whose
    rows are their inputs, and which `Trainer` evaluates. Other kinds name a derived
    class in [`~models.model_kind.ModelKind.training_rules_class`].

    Args:
        model (`nn.Module`): The model to train.
        args ([`BaseConfig`]): Arguments of the trainer.
        processing_class: Processor or tokenizer of the trainer.
    """

    # If true, evaluation rows are numbered and can be evaluated in any order.
    numbers_rows = False
    # If true, the loss is a mean over the rows of a batch, otherwise over its labels other than -100.
    loss_per_row = False
    # If true, saved folders record the training texts of any dataset, not only of datasets with a column `text`.
    notes_texts = False
    # Columns of the rows that the collators read, or `None` for the arguments of `forward`.
    columns: tuple[str, ...] | None = None
    # Fields of the model card that describe the task, as of [`~tasks.Task.card`], or `None` for the trainer's metric.
    card: Mapping[str, Any] | None = None
    # Number of beams of evaluations, for the model card.
    num_beams: int | None = None

    def __init__(self, model: nn.Module, args: BaseConfig, processing_class: Any) -> None:
        self.model = model
        self.args = args
        self.processing_class = processing_class

    def training_rows(self, rows: Any) -> Any:
        """Return training rows as the data collator reads them."""
        return rows

    def evaluation_rows(self, rows: Any) -> Any:
        """Return evaluation rows as the evaluation collator reads them."""
        return rows

    def data_collator(self) -> Any:
        """Return the data collator if none is given, or `None` for that of `Trainer`."""
        return None

    def evaluation_collator(self, data_collator: Any) -> Any:
        """Return the collator of evaluation batches."""
        return data_collator

    def row_length(self, values: Sequence) -> int | None:
        """Return the length of the main input of a row, or `None` if it is no sequence (such as an image)."""
        return len(values) if np.ndim(values[:1]) < 2 else None

    def own_rates(self) -> list[tuple[nn.Module, float, float]]:
        """Return (module, learning rate, weight decay) for modules whose rates differ from the arguments."""
        return []

    def metric_names(self, rows: Any) -> set[str]:
        """Return the names of the metrics of evaluations of `rows` without `compute_metrics`."""
        return {"loss"}

    def count_labels(self, labels: Tensor) -> Tensor:
        """Return the number of labels that the model's own loss is averaged over."""
        return (labels != -100).sum()

    def predict(self, trainer: Trainer, model: nn.Module, inputs: dict[str, Any]) -> tuple | None:
        """Return loss, predictions and labels of an evaluation batch, or `None` to let `Trainer` compute them."""
        return None

    @property
    def needs_predictions(self) -> bool:
        """`True` if evaluations keep the predictions for `add_metrics`, even if `Trainer` asks only for the loss."""
        return False

    def add_metrics(self, output: EvalLoopOutput, rows: Any, prefix: str) -> EvalLoopOutput:
        """Return the output of an evaluation of `rows` with the metrics of this kind of model."""
        return output

"""Interface of a task, which defines the data, models and metrics of the commands."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from transformers import PreTrainedModel

from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.compress.trainers import (
    DistillationConfig,
    DistillationTrainer,
    RecursiveDistillationConfig,
    StarkConfig,
)
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.solver.data import LoadReport
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.utils.provenance import inherit_training_texts
from hf_mwp.utils.usage_error import UsageError

from .data_options import DataArguments


if TYPE_CHECKING:
    from datasets import Dataset


class Task(ABC):
    """Base class of tasks, which define data (loaded on first use), models, collator and metrics. [`add_task`] adds a
    derived class; examples are [`MathWordProblems`] and [`GlueTask`]."""

    name: str  # of the dataset
    scheme: str  # description of the splits
    source: Path | None = None  # file or folder of the rows, beside which pseudo-labels have their labeller's record
    kind: str = "model"  # noun for the models in tables and progress bars
    metric: str = "accuracy"  # key of the main metric in a report; higher is better
    metrics: Sequence[str] = ()  # metrics that can select a checkpoint; any metric if empty
    recorded: Sequence[str] = ()  # options of `predict`, from a config or `EvaluateArguments`, to record with metrics
    load_report: LoadReport | None = None  # counts of rows read and skipped, and warnings
    trainer_class: type[BaseTrainer] = BaseTrainer
    distillation_class: type[BaseTrainer] = DistillationTrainer
    configs: Mapping[str, type[BaseConfig]] = {  # of the trainers, by command
        "train": BaseConfig,
        "distill": DistillationConfig,
        "prune": RecursiveDistillationConfig,
        "stark": StarkConfig,
    }
    prediction_loss: str = "kd"  # default of `DistillationConfig.prediction_loss`
    solves: bool = False  # whether `predict` accepts `reranker` and `unfinished`, see [`solve_problems`]

    @cached_property
    @abstractmethod
    def splits(self) -> Mapping[str, Dataset]:
        """Rows of the splits train, validation and test. Their `text` is compared with a model's training texts."""

    def rows(self, split: str, needed: bool = True) -> Dataset | None:
        """Return the rows of a split. If there are none, returns `None` or, with `needed`, raises `UsageError`."""
        if len(self.splits.get(split, ())):
            return self.splits[split]
        if not needed:
            return None
        fault = "no"
        if split in self.splits:
            fault = "no usable rows in its"
        splits_with_rows = [name for name, rows in self.splits.items() if len(rows)]
        remedy = "No split has rows. Use different data."
        if splits_with_rows:
            remedy = f"Splits with rows: {', '.join(splits_with_rows)} (`--split` of evaluate, heads and rerank)."
        raise UsageError(f"{self.name} has {fault} {split!r} split. {remedy}")

    @abstractmethod
    def build_model(self, options: Any) -> tuple[PreTrainedModel, Any]:
        """Build a model for training, and its `processing_class`, from the options of a command."""

    @abstractmethod
    def load_model(self, name: str, split: str = "train") -> tuple[PreTrainedModel, Any]:
        """Load a model and its `processing_class`. Raises `UsageError` if it does not support the split's rows."""

    def make_student(
        self, teacher: PreTrainedModel, processor: Any, options: StudentArguments
    ) -> tuple[PreTrainedModel, Any]:
        """Create or load the student of a distillation, and return it with its `processing_class`."""
        raise NotImplementedError(f"{type(self).__name__} does not support distillation.")

    @abstractmethod
    def collator(self, model: PreTrainedModel, processor: Any) -> Any:
        """Return the function that collates prepared rows to a batch."""

    def learnable(self, rows: Dataset) -> Dataset:
        """Return the rows that have a target, for training and for scores of heads and neurons."""
        return rows

    def prepare(self, rows: Dataset, processor: Any) -> Dataset:
        """Convert rows to the format that the trainer expects."""
        return rows

    def encode(self, rows: Iterable[Mapping[str, Any]], processor: Any) -> Sequence[Mapping[str, Any]]:
        """Return the inputs and labels of rows, for the collator. Rows without labels may be left out."""
        raise NotImplementedError

    def labelled_batches(
        self, model: PreTrainedModel, processor: Any, rows: Iterable[Mapping[str, Any]], batch_size: int
    ) -> list[Mapping[str, Any]]:
        """Return batches of the rows that have labels, as inputs of the model."""
        encoded = list(self.encode(rows, processor))
        collate = self.collator(model, processor)
        batches = []
        for start in range(0, len(encoded), batch_size):
            rows_of_batch = encoded[start : start + batch_size]
            batches.append(collate(rows_of_batch))
        return batches

    def trainer_arguments(
        self, model: PreTrainedModel, processor: Any, config: BaseConfig | None = None
    ) -> dict[str, Any]:
        """Return a trainer's arguments except its config. With `config`, evaluations may measure generated texts."""
        if self.source is not None:
            labeller = SimpleNamespace(training_texts=TrainingTexts.of_labeller(self.source))
            inherit_training_texts(model, labeller)
        collator = self.collator(model, processor)
        train = self.prepare(self.learnable(self.rows("train")), processor)
        validation = self.rows("validation", needed=False)
        if validation is not None:
            validation = self.prepare(validation, processor)
        return {
            "model": model,
            "data_collator": collator,
            "train_dataset": train,
            "eval_dataset": validation,
            "processing_class": processor,
        }

    def complete(self, config: BaseConfig, command: str) -> Any:
        """Return a copy of a command's config, with the metric and the prediction loss of the task if they are `None`.
        Raises `TypeError` for a config of another task, `UsageError` for a metric that the task does not report."""
        config_class = self.configs[command]
        if not isinstance(config, config_class):
            name = config_class.__name__
            raise TypeError(f"`config` must be a `{name}` for this task, got `{type(config).__name__}`.")
        config = copy.copy(config)
        if config.metric_for_best_model is None:
            config.metric_for_best_model = self.default_metric(command)
        if isinstance(config, DistillationConfig) and config.prediction_loss is None:
            config.prediction_loss = self.prediction_loss
        metric = config.metric_for_best_model
        metrics = ["loss", *self.metrics]
        if self.metrics and metric is not None and metric.removeprefix("eval_") not in metrics:
            fault = f"unknown metric {metric!r} for {self.name}. Choose one of {', '.join(metrics)}"
            raise UsageError(f"`metric_for_best_model`: {fault}.")
        return config

    def default_metric(self, command: str) -> str | None:
        """Return the metric that selects checkpoints, or `None` if the trainer selects it."""
        return None

    @abstractmethod
    def predict(self, model: PreTrainedModel, processor: Any, rows: Sequence[Mapping[str, Any]], **options) -> list:
        """
        Predict each row. The options are `batch_size`, `progress` (see [`solve_problems`]), those in `recorded`, and
        with `num_beams` also `max_decode_length`. Predictions have a method `to_dict()` and optional attributes:
        `is_right` (`bool`), `numbers` (prediction and label), `kind` (`str`; each kind is also reported separately),
        and `failure` (two strings: the reason for a wrong prediction and its meaning).
        """

    @abstractmethod
    def report(self, predictions: Sequence[Any]) -> dict[str, float]:
        """Compute the metrics and the number of predictions. The list may be empty."""

    def details(self, predictions: Sequence[Any]) -> dict[str, Any]:
        """Compute additional results of `hf-mwp evaluate`, such as [`metrics.calibration_report`]."""
        return {}

    @abstractmethod
    def card(self) -> dict[str, Any]:
        """
        Return the data of a model card: `pipeline_tag`, `datasets`, `language` and `tags`. Optional keys are `metrics`
        (for each column the report's keys of the metric and of the number of items; default: answers and equations),
        `shares` (`False` if the metrics are not shares; the first share is shown in percent), `items` (noun for the
        rows in `num_{items}`; default: problems), and `example` (an input of the pipeline).
        """

    def data_record(self) -> dict[str, Any]:
        """Return the content of a run's `data.json`, from which model cards are written."""
        used = {split: len(rows) for split, rows in self.splits.items()}
        record = {"dataset": self.name, "scheme": self.scheme, "used": used, "card": self.card()}
        if self.load_report is not None:
            record["report"] = self.load_report.to_dict()
        return record


def limit_rows(rows: Dataset, split: str, options: DataArguments) -> Dataset:
    """Limit the rows of a split to the number that the options set."""
    limit = options.max_train_samples if split == "train" else options.max_eval_samples
    if limit is None:
        return rows
    return rows.select(range(min(limit, len(rows))))

"""Interface of a task: data, model and metric of the commands."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError


if TYPE_CHECKING:
    from datasets import Dataset
    from transformers import PreTrainedModel

    from ..building.student import StudentArguments
    from ..data import LoadReport
    from ..trainers.base_config import BaseConfig
    from ..trainers.base_trainer import BaseTrainer
    from .data_options import DataArguments


class Task(ABC):
    """
    Data, model, collator and metric of a task. A new one is a class in a file of this room, see [`MathWordProblems`]
    and [`GlueTask`]. Fields describe it, the methods are called by [`~tasks.training.train`], its siblings and
    [`~tasks.evaluation.evaluate_split`].

    Attributes:
        name (`str`), scheme (`str`): Data set, and how it is split, in words.
        kind (`str`): Noun for its models in tables and progress bars.
        metric (`str`): Key of a report by which models are compared, higher is better.
        figures (`Sequence[str]`): Keys by which a checkpoint may be chosen; any if empty.
        recorded (`Sequence[str]`): Options of `predict` that are recorded beside the metrics.
        shares_work (`bool`): Whether `predict` takes `unfinished`, see [`solve_problems`].
        load_report ([`LoadReport`], *optional*): Counts of rows read and skipped, and warnings.
    """

    name: str
    scheme: str
    kind: str = "model"
    metric: str = "accuracy"
    figures: Sequence[str] = ()
    recorded: Sequence[str] = ()
    load_report: LoadReport | None = None
    shares_work: bool = False

    @cached_property
    @abstractmethod
    def splits(self) -> Mapping[str, Dataset]:
        """
        Rows of `"train"`, `"validation"` and `"test"`, as far as these exist, with a `text` to compare with those that
        a model was trained on.
        """

    def rows(self, split: str, needed: bool = True) -> Dataset | None:
        """Return a split; if it does not exist or is empty, `None` or, if it is `needed`, `UsageError`."""
        if len(self.splits.get(split, ())):
            return self.splits[split]
        if not needed:
            return None
        lack = f"{self.name} has no {f'usable rows in its {split!r}' if split in self.splits else repr(split)} split"
        others = ", ".join(name for name, rows in self.splits.items() if len(rows))
        raise UsageError(f"{lack}; it has {others} (--split)." if others else f"{lack}, nor another: use other data.")

    @abstractmethod
    def build_model(self, options: Any) -> tuple[PreTrainedModel, Any]:
        """Build a model to be trained, and its `processing_class`, from the options of a command."""

    @abstractmethod
    def load_model(self, name: str, split: str = "train") -> tuple[PreTrainedModel, Any]:
        """
        Load a trained model and its `processing_class` from a folder or the Hub; `UsageError` if it is of another
        kind, or not made for the rows of the split.
        """

    def make_student(
        self, teacher: PreTrainedModel, processor: Any, options: StudentArguments
    ) -> tuple[PreTrainedModel, Any]:
        """Make the student of a distillation from its teacher, or load it, with its `processing_class`."""
        raise NotImplementedError(f"{type(self).__name__} makes no students.")

    @abstractmethod
    def collator(self, model: PreTrainedModel, processor: Any) -> Any:
        """Return the function that makes a batch of prepared rows."""

    def prepare(self, rows: Dataset, processor: Any) -> Dataset:
        """Return rows in the form that the trainer expects."""
        return rows

    def trainer_arguments(self, model: PreTrainedModel, processor: Any) -> dict[str, Any]:
        """Return the arguments of a trainer except its config."""
        validation = self.rows("validation", needed=False)
        return {
            "model": model,
            "data_collator": self.collator(model, processor),
            "train_dataset": self.prepare(self.rows("train"), processor),
            "eval_dataset": None if validation is None else self.prepare(validation, processor),
            "processing_class": processor,
        }

    def trainer(self, processor: Any, distils: bool) -> partial[BaseTrainer]:
        """Return the class of the trainer that fine-tunes or distils a model, with arguments that only it takes."""
        from ..trainers import DistillationTrainer
        from ..trainers.base_trainer import BaseTrainer

        return partial(DistillationTrainer if distils else BaseTrainer)

    def defaults_of(self, config: BaseConfig) -> Mapping[str, Any]:
        """Return the fields of a config for which the task has another default."""
        return {}

    def predict_options(self, args: Any, num_beams: int | None = None, processor: Any = None) -> dict[str, Any]:
        """
        Return the options of `predict` in a trainer's config, where `num_beams` overrides its own, or in
        [`EvaluateArguments`], which come with a `processor`.
        """
        return {}

    @abstractmethod
    def predict(self, model: PreTrainedModel, processor: Any, rows: Sequence[Mapping[str, Any]], **options) -> list:
        """
        Predict each row.

        Args:
            options: `batch_size`, `progress` (as in [`solve_problems`]), and those of `predict_options`.

        Returns:
            `list`: objects with a method `to_dict()` and optional attributes: `is_right` (`bool`), `numbers` (two: the
            prediction and its label), `kind` (`str`, predictions of each kind are also reported apart), `failure`
            (two texts: the reason of a wrong prediction and its meaning).
        """

    @abstractmethod
    def report(self, predictions: Sequence[Any]) -> dict[str, float]:
        """Compute metrics of predictions, with their number; also of an empty list."""

    def details(self, predictions: Sequence[Any]) -> dict[str, Any]:
        """Compute further results of `hf-mwp evaluate`, such as [`metrics.calibration_report`]."""
        return {}

    @abstractmethod
    def card(self) -> dict[str, Any]:
        """
        Return the facts of a model card: `pipeline_tag`, `datasets`, `language`, `tags`; `metrics`, for each
        column the key of a report and that of the number of items, if not answers and equations; `shares`, `False` if
        these are not shares, of which the first is shown in percent; `items`, what is counted (`num_{items}`), if not
        problems; `example`, an input of the pipeline.
        """


def limited(rows: Dataset, split: str, options: DataArguments) -> Dataset:
    """Limit the rows of a split to the number that the options set."""
    limit = options.max_train_samples if split == "train" else options.max_eval_samples
    return rows if limit is None else rows.select(range(min(limit, len(rows))))

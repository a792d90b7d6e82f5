"""What is learned, for the commands that train and measure."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..options import default_of
from ..usage_error import UsageError


if TYPE_CHECKING:
    from datasets import Dataset
    from rich.console import Console
    from transformers import PreTrainedModel

    from ..building.student import StudentArguments
    from ..metrics import TrainingOverlap
    from ..trainers.base_config import BaseConfig
    from ..trainers.base_trainer import BaseTrainer


class Task(ABC):
    """
    Data, model, collator, metric, and what a card says of them: a task is one class in a file of this room. The run
    around a trainer ([`~cli.commands.training.training_run.TaskTraining`]) and [`evaluate_split`] know no more of it than what stands here.

    What the methods give for three tasks, the first two of which are there ([`MathWordProblems`], [`GlueTask`]):

    | | math word problems | RTE of GLUE | paraphrases with BART |
    | --- | --- | --- | --- |
    | `name`, `scheme` | `"math23k"`, its split | `"rte"`, what is held out | `"qqp"`, seed of the split |
    | `kind`, `metric` | `"solver"`, `"answer_accuracy"` | `"classifier"`, `"accuracy"` | `"model"`, `"rouge_l"` |
    | `read_splits` | rows of the common schema | `sentence1`, `sentence2`, `label`; the development split is `test` | `source`, `target` |
    | `build_model` | encoder and tree decoder, `MwpProcessor` | `AutoModelForSequenceClassification` of 2 labels, tokenizer | `BartForConditionalGeneration`, tokenizer |
    | `make_student` | the teacher's first layers and decoder | its first layers, pooler and classifier | its first layers |
    | `make_trainer` | `SolverTrainer` | `BaseTrainer` | `BaseTrainer` |
    | `defaults` | the trainer's own | best by `accuracy` | best by `rouge_l` |
    | `prepare` | the rows: the trainer encodes | pairs tokenised, truncated | sources, and targets as `text_target`, tokenised |
    | `collator` | the solver's own | `DataCollatorWithPadding` | `DataCollatorForSeq2Seq`, which shifts the labels |
    | `options_of` | beams, longest tree, rule | none | beams, `max_new_tokens` |
    | `predict` | `SolverPrediction` | the class of the highest logit, its probability | `generate`, decoded |
    | `report` | accuracy of answers and equations, by level | `accuracy` | `rouge_l`, `bleu` |
    | `cells` | in percent, levels with their counts | `accuracy %` | both with two decimals |
    | `failures` | reasons, what each means | pairs of classes taken for each other | none |
    | `texts` | the problem | both sentences in a line | the source |
    | `card` | the pipeline's own tag | `text-classification`, `nyu-mll/glue` | `text2text-generation` |
    """  # noqa: E501 (a table)

    name: str
    """Name of the data set."""
    scheme: str
    """How it is split, in words."""
    kind: str = "model"
    """What its models are called in bars and tables."""
    metric: str = "accuracy"
    """The key of a report that says how good a model is, from 0 or -1 to 1."""
    recorded: Sequence[str] = ()
    """Options of [`~Task.predict`] that stand beside the figures."""

    @abstractmethod
    def read_splits(self) -> Mapping[str, Dataset]:
        """Rows of `"train"`, `"validation"` and `"test"`, as far as there are such."""

    @abstractmethod
    def build_model(self, options: Any) -> tuple[PreTrainedModel, Any]:
        """A model to be trained on this data and its `processing_class`, as the options of a command want it."""

    @abstractmethod
    def load_model(self, name: str) -> tuple[PreTrainedModel, Any]:
        """A trained model and its `processing_class` from a folder or the Hub; `UsageError` if it is none."""

    @abstractmethod
    def collator(self, model: PreTrainedModel, processor: Any) -> Any:
        """Makes a batch of rows that are prepared."""

    @abstractmethod
    def predict(self, model: PreTrainedModel, processor: Any, rows: Sequence[Mapping[str, Any]], **options) -> list:
        """
        What the model makes of each row, in their order.

        Args:
            options: `batch_size`, `progress` (as in [`solve_problems`]), and what [`~Task.options_of`] gives.
        """

    @abstractmethod
    def report(self, predictions: Sequence[Any]) -> dict[str, float]:
        """Figures of predictions, with how many these are of; also of none at all."""

    @abstractmethod
    def card(self) -> dict[str, Any]:
        """
        What a card says of the task: `pipeline_tag`, `datasets`, `language`, `tags`; and `metrics`, for each column of
        its figures the key of a report and that of how many items it is of, where these are not answers and equations;
        `items`, what is counted (`num_{items}`), where these are no problems; `example`, what a pipeline is given.
        """

    def make_student(
        self, teacher: PreTrainedModel, processor: Any, options: StudentArguments
    ) -> tuple[PreTrainedModel, Any]:
        """
        The student of a distillation and its `processing_class`, made of its teacher or loaded, as the options of a
        command want it.
        """
        raise NotImplementedError(f"{type(self).__name__} makes no students.")

    def make_trainer(self, config: BaseConfig, model: PreTrainedModel, processor: Any) -> BaseTrainer:
        """The trainer that fine-tunes a model."""
        from ..trainers.base_trainer import BaseTrainer

        return BaseTrainer(args=config, **self.trainer_arguments(model, processor))

    @property
    def defaults(self) -> Mapping[str, Any]:
        """Trainers' arguments whose default is another one for this task."""
        return {}

    def adapt(self, config: BaseConfig) -> None:
        """Puts [`~Task.defaults`] into a trainer's arguments, where these stand as they are by default."""
        standing = {field.name: default_of(field) for field in fields(config)}
        for name, value in self.defaults.items():
            if name in standing and getattr(config, name) == standing[name]:
                setattr(config, name, value)

    def prepare(self, rows: Dataset, processor: Any) -> Dataset:
        """Rows as the trainer takes them; those of the part by default."""
        return rows

    def options_of(self, config: Any, num_beams: int | None = None) -> dict[str, Any]:
        """What [`~Task.predict`] takes from a trainer's arguments; `num_beams` overrides what they say."""
        return {}

    def search_options(self, args: Any, processor: Any) -> dict[str, Any]:
        """The same from the options of `hf-mwp evaluate`."""
        return {"batch_size": args.batch_size}

    def split_to_read(self, split: str) -> Dataset:
        """The rows of a part; `UsageError` if there is no such part, or it has none."""
        rows = self.split(split)
        if rows is None:
            raise UsageError(self._lack_of(split, repr(split), ": take one (--split)"))
        return rows

    def check_split(self, split: str, processor: Any, model: str) -> None:
        """Raises `UsageError` if a part has no rows, or none for the named model."""
        self.split_to_read(split)

    def check_training(self, processor: Any, model: str) -> None:
        """Raises `UsageError` if the training split has no rows, or none for the named model."""
        _ = self.train

    def calibration(self, predictions: Sequence[Any]) -> dict[str, Any] | None:
        """What the predictions' probabilities are worth, see [`metrics.calibration_report`]; `None` if not known."""
        return None

    def confidence(self, predictions: Sequence[Any]) -> float | None:
        """Mean variance of the probabilities that each row's classes have; `None` where there are none."""
        return None

    def describe(self, options: Mapping[str, Any]) -> str:
        """How was predicted, in a few words for a heading."""
        return ""

    def cells(self, report: Mapping[str, float]) -> dict[str, str]:
        """A report as the cells of a table's line, by their headings."""
        return {name: f"{value:,}" if isinstance(value, int) else f"{value:.3f}" for name, value in report.items()}

    def kinds(self, predictions: Sequence[Any]) -> dict[str, list[int]]:
        """Indices of the rows of each kind that the data set tells apart, for a report of its own."""
        return {}

    def failures(self, predictions: Sequence[Any]) -> dict[str, tuple[int, str]]:
        """Why predictions are wrong: for each reason how many, and what it means."""
        return {}

    def is_right(self, prediction: Any) -> bool | None:
        """Whether a prediction is right; `None` where there is more than right and wrong."""
        return None

    def numbers(self, prediction: Any) -> tuple[float, float] | None:
        """A prediction and its label as numbers, of which figures can be made anew; `None` if they are none."""
        return None

    def texts(self, rows: Sequence[Mapping[str, Any]]) -> list[str]:
        """What of the rows is compared with what a model was trained on."""
        return [row["text"] for row in rows]

    def to_dict(self, prediction: Any, known: Mapping[str, Any]) -> dict[str, Any]:
        """A prediction as JSON has it, with what is known of its text."""
        return prediction.to_dict() | dict(known)

    def tell(self, console: Console) -> None:
        """Prints what was read."""
        console.print(f"{self.name}, split {self.scheme}", markup=False)

    def record(self) -> dict[str, Any]:
        """What a run's `data.json` says, from which a card is made."""
        used = {split: len(rows) for split, rows in self.splits.items()}
        return {"dataset": self.name, "scheme": self.scheme, "used": used, "card": self.card()}

    @cached_property
    def splits(self) -> Mapping[str, Dataset]:
        """What [`~Task.read_parts`] gives, read once."""
        return self.read_splits()

    def split(self, name: str) -> Dataset | None:
        """A part that has rows, or `None`."""
        rows = self.splits.get(name)
        return rows if rows is not None and len(rows) else None

    @property
    def train(self) -> Dataset:
        """The training split; `UsageError` if there is none."""
        rows = self.split("train")
        if rows is None:
            raise UsageError(self._lack_of("train", "training"))
        return rows

    @property
    def validation(self) -> Dataset | None:
        """The validation split, if any."""
        return self.split("validation")

    @property
    def test(self) -> Dataset | None:
        """The test split, if any."""
        return self.split("test")

    def _lack_of(self, split: str, called: str, remedy: str = "") -> str:
        """What to say of a part without rows: whether there is such a part, and which have rows."""
        lack = f"{self.name} has no {f'usable rows in its {called}' if split in self.splits else called} split"
        others = ", ".join(name for name in self.splits if self.split(name) is not None)
        return f"{lack}; it has {others}{remedy}." if others else f"{lack}; no part has any rows: take other data."

    def trainer_arguments(self, model: PreTrainedModel, processor: Any) -> dict[str, Any]:
        """What a trainer of this task is given beside its configuration."""
        return {
            "model": model,
            "data_collator": self.collator(model, processor),
            "train_dataset": self.prepare(self.train, processor),
            "eval_dataset": None if self.validation is None else self.prepare(self.validation, processor),
            "processing_class": processor,
        }

    def overlap(self, model: PreTrainedModel, split: str) -> TrainingOverlap:
        """What a model was trained on, or else the training split, which is not compared with itself."""
        from ..metrics import TrainingOverlap

        rows = None if split == "train" else self.split("train")
        return TrainingOverlap.of(model, None if rows is None else self.texts(rows))

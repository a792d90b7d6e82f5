"""A model measured on a part of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .task import Task


if TYPE_CHECKING:
    from transformers import PreTrainedModel, Trainer

    from ..metrics import TrainingOverlap

# Characters of a line that are read to tell predictions from other files.
LONGEST_RECORD = 1 << 20


@dataclass(frozen=True)
class Evaluation:
    """
    How a model did on a part of a task.

    Args:
        task ([`Task`]), split (`str`): What it was measured on.
        texts (`Sequence[str]`): Texts of the rows.
        predictions (`Sequence`): What the model made of them.
        overlap ([`~metrics.TrainingOverlap`]): Which of them it was trained on.
        options (`Mapping[str, Any]`): How was predicted.
    """

    task: Task
    split: str
    texts: Sequence[str]
    predictions: Sequence[Any]
    overlap: TrainingOverlap
    options: Mapping[str, Any]

    @cached_property
    def reports(self) -> dict[str, dict[str, float]]:
        """Figures of all rows, by what the model was trained on ([`~metrics.TrainingOverlap.groups`]), and by kind."""
        return self.reports_of(self.predictions)

    def reports_of(self, predictions: Sequence[Any]) -> dict[str, dict[str, float]]:
        """The same of other predictions for the same rows."""
        groups = self.overlap.groups(self.texts) | self.task.kinds(predictions)
        return {name: self.task.report([predictions[row] for row in rows]) for name, rows in groups.items()}

    @cached_property
    def figures(self) -> dict[str, Any]:
        """What `metrics.json` says of the part."""
        options = {name: self.options[name] for name in self.task.recorded}
        texts = self.overlap.record(self.texts)
        return {"scheme": self.task.scheme, **options, "reports": self.reports, "training_texts": texts}

    @property
    def outcomes(self) -> str:
        """What became of each row, 1 if it is right and 0 if not; empty for a task that has more than these."""
        right = [self.task.is_right(prediction) for prediction in self.predictions]
        return "" if None in right else "".join("01"[each] for each in right)

    @property
    def examples(self) -> dict[str, str]:
        """`predictions` and `labels` of the rows, numbers in a line with six digits; empty for a task without any."""
        numbers = [self.task.numbers(prediction) for prediction in self.predictions]
        if not numbers or None in numbers:
            return {}
        return {
            name: " ".join(f"{number:.6g}" for number in column)
            for name, column in zip(("predictions", "labels"), zip(*numbers, strict=True), strict=True)
        }

    @property
    def record(self) -> dict[str, Any]:
        """The figures with what became of each row, from which models are compared row by row."""
        return self.figures | {"outcomes": self.outcomes, "examples": self.examples}

    @property
    def heading(self) -> str:
        """Part, split and options in words."""
        described = self.task.describe(self.options)
        return f"{self.split} part ({self.task.scheme}){described and f', {described}'}"

    def records(self) -> Iterator[dict[str, Any]]:
        """Each prediction, with whether the model was trained on its text."""
        for text, prediction in zip(self.texts, self.predictions, strict=True):
            yield self.task.to_dict(prediction, self.overlap.flags(text))


def check_predictions_file(path: Path, dataset: Path | None = None, overwrite: bool = False) -> None:
    """
    Raises `UsageError` if a file of predictions cannot be written without loss: if the path is the `dataset`, no
    regular file or, unless `overwrite` allows it, a file with something other than [`Evaluation.records`].
    """
    if not path.exists():
        return
    remedy = "Name another file"
    if dataset is not None and path.samefile(dataset):
        raise UsageError(f"`predictions`: {path} is the data set. {remedy}.")
    if not path.is_file():
        raise UsageError(f"`predictions`: {path} is no regular file. {remedy}.")
    if not overwrite and not _has_predictions(path):
        raise UsageError(
            f"`predictions`: {path} holds something other than predictions. {remedy}, or replace it with --overwrite."
        )


def _has_predictions(path: Path) -> bool:
    """Whether the first line is a prediction, or the file is empty."""
    try:
        with path.open(encoding="utf-8") as file:
            line = file.readline(LONGEST_RECORD)
        record = json.loads(line) if line else None
    except (OSError, ValueError, RecursionError):
        return False
    return not line or (isinstance(record, dict) and any(name.startswith("masked_text_in_") for name in record))


def evaluate_split(task: Task, model: PreTrainedModel, processor: Any, split: str, **options) -> Evaluation:
    """
    Measures a model on a part, or raises `UsageError` if there is none; `options` are those of [`~Task.predict`].

    Example:

    ```python
    >>> task = MathWordProblems(DataArguments(dataset="math23k"))
    >>> model, processor = task.load_model("model_cards/mwp-student-3L-gts-math23k")
    >>> evaluate_part(task, model, processor, "test", num_beams=5).reports["all problems"]["answer_accuracy"]
    ```
    """
    rows = list(task.split_to_read(split))
    predictions = task.predict(model, processor, rows, **options)
    return Evaluation(task, split, task.texts(rows), predictions, task.overlap(model, split), options)


def evaluate_trained(task: Task, trainer: Trainer, split: str, num_beams: int | None = None, **options) -> Evaluation:
    """The same for the model of a trainer, with the options of its arguments."""
    options |= {"batch_size": trainer.args.per_device_eval_batch_size, **task.options_of(trainer.args, num_beams)}
    return evaluate_split(task, trainer.model, trainer.processing_class, split, **options)


def splits_at_end(task: Task, test: bool, test_num_beams: int | None) -> dict[str, int | None]:
    """What a command measures at its end, with the beams: validation and, if `test`, test split, if they have rows."""
    splits = {"validation": None} | ({"test": test_num_beams} if test else {})
    return {split: beams for split, beams in splits.items() if task.split(split) is not None}


def records_of(
    task: Task, model: PreTrainedModel, processor: Any, args: Any, splits: Mapping[str, int | None], **options
) -> dict[str, dict[str, Any]]:
    """[`Evaluation.record`] of a model on parts, with their beams and the options of a trainer's arguments."""
    options |= {"batch_size": args.per_device_eval_batch_size}
    return {
        split: evaluate_split(task, model, processor, split, **options, **task.options_of(args, beams)).record
        for split, beams in splits.items()
    }

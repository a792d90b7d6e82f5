"""Evaluation of a model on a split of a task."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from hf_mwp.solver.metrics import TrainingOverlap
from hf_mwp.utils.main_process import is_main_process, share_rows

from .reporter import SILENT, Reporter
from .task import Task


if TYPE_CHECKING:
    from transformers import PreTrainedModel


@dataclass(frozen=True)
class Evaluation:
    """Predictions of a model on a split of a task, with their metrics."""

    task: Task
    split: str
    texts: Sequence[str]  # of the rows
    predictions: Sequence[Any]  # results of [`~Task.predict`]
    overlap: TrainingOverlap  # which of the texts the model was trained on
    options: Mapping[str, Any]  # of [`~Task.predict`]

    @cached_property
    def reports(self) -> dict[str, dict[str, float]]:
        """Metrics of all rows, of [`~metrics.TrainingOverlap.groups`], and of each kind of prediction."""
        return self.reports_of(self.predictions)

    def reports_of(self, predictions: Sequence[Any]) -> dict[str, dict[str, float]]:
        """Return the metrics of the given predictions for the same rows."""
        rows_by_kind: dict[str, list[int]] = {}
        for row, prediction in enumerate(predictions):
            group = getattr(prediction, "kind", None)
            if group:
                rows_by_kind.setdefault(group, []).append(row)
        groups = self.overlap.groups(self.texts) | dict(sorted(rows_by_kind.items()))
        reports = {}
        for name, rows in groups.items():
            predictions_of_group = [predictions[row] for row in rows]
            reports[name] = self.task.report(predictions_of_group)
        return reports

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics and search settings of the split, as written to `metrics.json`."""
        settings = {name: self.options[name] for name in self.task.recorded}
        return {
            "scheme": self.task.scheme,
            **settings,
            "reports": self.reports,
            "training_texts": self.overlap.record(self.texts),
        }

    @property
    def record(self) -> dict[str, Any]:
        """Return the metrics with data to compare two models row by row: `outcomes`, a "1" for each correct and a "0"
        for each wrong row, and `examples`, the `predictions` and `labels` with six digits; empty if unknown."""
        outcomes = [getattr(prediction, "is_right", None) for prediction in self.predictions]
        outcome_digits = ""
        if None not in outcomes:
            for is_right in outcomes:
                outcome_digits += "1" if is_right else "0"
        numbers = [getattr(prediction, "numbers", None) for prediction in self.predictions]
        examples = {}
        if numbers and None not in numbers:
            predicted, labels = zip(*numbers, strict=True)
            examples = {"predictions": _six_digits(predicted), "labels": _six_digits(labels)}
        return self.metrics | {"outcomes": outcome_digits, "examples": examples}

    @property
    def failures(self) -> dict[tuple[str, str], int]:
        """Number of wrong predictions by the reason for the failure and its meaning, the most frequent first."""
        failures: Counter = Counter()
        for prediction in self.predictions:
            failure = getattr(prediction, "failure", None)
            if failure is not None:
                failures[failure] += 1
        return dict(failures.most_common())

    @property
    def heading(self) -> str:
        """Description of the split and the recorded options."""
        phrases = [f"{self.split} split ({self.task.scheme})"]
        for name in self.task.recorded:
            option = name.replace("_", " ")
            phrases.append(f"{option} {self.options[name]!r}")
        return ", ".join(phrases)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each prediction as a dictionary that also tells whether the model was trained on its text."""
        for text, prediction in zip(self.texts, self.predictions, strict=True):
            yield prediction.to_dict() | self.overlap.flags(text)


def _six_digits(numbers: Sequence[float]) -> str:
    return " ".join(f"{number:.6g}" for number in numbers)


def predict_options(task: Task, args: Any, num_beams: int | None = None) -> dict[str, Any]:
    """Return the options of [`~Task.predict`] from a trainer's config or `EvaluateArguments`."""
    options = {name: getattr(args, name) for name in task.recorded}
    if "num_beams" in options:
        options["num_beams"] = num_beams or args.num_beams or 1
        options["max_decode_length"] = args.max_decode_length
    return options


def evaluate_split(
    task: Task, model: PreTrainedModel, processor: Any, split: str, share: bool = False, **options
) -> Evaluation:
    """Evaluate a model on a split with options of [`~Task.predict`]. With `share`, which all processes must set, each
    process predicts a part of the rows. Raises `UsageError` if the split has no rows."""
    rows = list(task.rows(split))
    predict = partial(task.predict, model, processor, **options)
    if share and not task.solves:
        predictions = share_rows(predict, rows)
    else:
        predictions = predict(rows)
    # If the model has no record of its training texts, texts are compared with the training split.
    training_texts = None
    if split != "train":
        training_rows = task.rows("train", needed=False)
        if training_rows is not None:
            training_texts = training_rows["text"]
    overlap = TrainingOverlap.of(model, training_texts)
    texts = [row["text"] for row in rows]
    return Evaluation(task, split, texts, predictions, overlap, options)


def evaluate_splits(
    task: Task, model: PreTrainedModel, processor: Any, config: Any, args: Any, reporter: Reporter = SILENT
) -> dict[str, Evaluation]:
    """Evaluate a trained model, on the main process, on the validation and (with `args.test`) test split, if any."""
    evaluations: dict[str, Evaluation] = {}
    if not is_main_process():
        return evaluations
    num_beams_of_split = {"validation": None}
    if args.test:
        num_beams_of_split["test"] = args.test_num_beams
    for split, num_beams in num_beams_of_split.items():
        if task.rows(split, needed=False) is not None:
            options = {"batch_size": config.per_device_eval_batch_size, "progress": reporter.progress()}
            options |= predict_options(task, config, num_beams)
            evaluations[split] = evaluate_split(task, model, processor, split, **options)
    return evaluations


def measure_splits(
    task: Task, model: PreTrainedModel, processor: Any, config: Any, args: Any, reporter: Reporter = SILENT
) -> dict[str, dict[str, Any]]:
    """Move a model to the config's device, and return the [`Evaluation.record`] of each of [`evaluate_splits`]."""
    evaluations = evaluate_splits(task, model.to(config.device), processor, config, args, reporter)
    return {split: evaluation.record for split, evaluation in evaluations.items()}

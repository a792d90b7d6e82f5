"""GLUE tasks for text classifiers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import torch
from transformers import DataCollatorWithPadding

from hf_mwp.commands.building.classifier import build_classifier, load_classifier, make_student_classifier
from hf_mwp.commands.building.encoder import SAMPLE_BATCH, SAMPLE_SIZE
from hf_mwp.compress.metrics.glue import GLUE_FIGURES
from hf_mwp.utils.length_batches import batches_by_length

from .data_options import TaskArguments
from .glue_files import GLUE_SOURCES, HUB_ID, load_glue
from .task import Task, limit_rows


# Tasks whose main metric is not accuracy; for STS-B (regression) it is Spearman's correlation.
FIRST = {"mrpc": "f1", "qqp": "f1", "cola": "matthews"}
# Input of the example in a model card.
EXAMPLE = ("Tom has four apples.", "Tom has fruit.")


@dataclass(frozen=True)
class GluePrediction:
    """Prediction of a classifier or regressor for a row; see [`~Task.predict`]."""

    row: Mapping[str, Any]  # see [`load_glue`]
    value: float  # index of the predicted class, or predicted value of a regression
    probability: float | None = None  # of the predicted class
    variance: float | None = None  # of the probabilities of all classes
    classes: Sequence[str] = ()  # names of the classes

    def to_dict(self) -> dict[str, Any]:
        scores = {} if self.probability is None else {"score": self.probability}
        return {**self.row, "prediction": self.value, **scores}

    @property
    def is_right(self) -> bool | None:
        """Return whether the predicted class is correct, or `None` for a regression."""
        return None if self.probability is None else self.value == self.row["label"]

    @property
    def failure(self) -> tuple[str, str] | None:
        if self.is_right is not False:
            return None
        label = self.classes[self.row["label"]]
        predicted = self.classes[self.value]
        return f"{predicted} for {label}", f"{label} was taken for {predicted}"

    @property
    def numbers(self) -> tuple[float, float]:
        return self.value, self.row["label"]


class GlueTask(Task):
    """GLUE task for a classifier or, for STS-B, a regressor: any model of `AutoModelForSequenceClassification`."""

    kind = "classifier"

    def __init__(self, options: TaskArguments) -> None:
        self.options = options
        self.name = options.task
        self.classes = GLUE_SOURCES[self.name].classes
        if self.classes:
            self.metric = FIRST.get(self.name, "accuracy")
            self.metrics = list(dict.fromkeys([self.metric, "accuracy"]))
        else:
            self.metric = "spearman"
            self.metrics = ["spearman"]
            # A regression has no probabilities, so the student imitates the teacher's values.
            self.prediction_loss = "mse"
        self.scheme = "GLUE's development split as test"
        if options.select_on_dev:
            self.scheme = "GLUE's development split as validation and as test"
        elif options.validation_fraction:
            self.scheme = (
                f"{options.validation_fraction:.0%} of GLUE's training split held out as validation, {self.scheme}"
            )

    def default_metric(self, command):
        return self.metric

    @cached_property
    def splits(self):
        options = self.options
        validation_fraction = options.validation_fraction
        if options.select_on_dev:
            validation_fraction = 0.0
        splits = load_glue(self.name, options.data_dir, validation_fraction)
        if options.select_on_dev:
            splits["validation"] = splits["test"]
        for split, rows in splits.items():
            rows = limit_rows(rows, split, options)
            texts = [_text_of(row) for row in rows]
            splits[split] = rows.add_column("text", texts)
        return splits

    def build_model(self, options):
        return build_classifier(self.classes, options)

    def load_model(self, name, split="train"):
        return load_classifier(name, self.classes)

    def make_student(self, teacher, processor, options):
        def batches() -> list[Mapping[str, Any]]:
            sample = islice(self.rows("train"), SAMPLE_SIZE)
            return self.labelled_batches(teacher, processor, sample, SAMPLE_BATCH)

        return make_student_classifier(teacher, processor, batches, options), processor

    def collator(self, model, processor):
        return DataCollatorWithPadding(processor)

    def prepare(self, rows, processor):
        """Tokenise rows and keep their texts, which are recorded in the model's folder."""

        def encode(row: Mapping[str, Any]) -> dict[str, Any]:
            return self.encode([row], processor)[0] | {"dataset": f"{HUB_ID}, {self.name}"}

        return rows.map(encode, remove_columns=["label"], keep_in_memory=True)

    def encode(self, rows, processor):
        encoded = []
        for row in rows:
            inputs = processor(row["sentence1"], row["sentence2"], truncation=True)
            encoded.append({**inputs, "labels": row["label"]})
        return encoded

    def trainer_arguments(self, model, processor, config=None):
        return super().trainer_arguments(model, processor) | {"compute_metrics": self._metrics_of_logits}

    def _metrics_of_logits(self, output: Any) -> dict[str, float]:
        # Encoder-decoder models return further outputs.
        logits = output.predictions
        if isinstance(logits, tuple):
            logits = logits[0]
        values = logits.argmax(-1) if self.classes else logits.reshape(-1)
        return self._compute_metrics(values.tolist(), output.label_ids.tolist())

    def predict(self, model, processor, rows, batch_size=64, progress=None) -> list[GluePrediction]:
        encoded = self.encode(rows, processor)
        collate = self.collator(model, processor)
        lengths = [len(row["input_ids"]) for row in encoded]
        batches = batches_by_length(lengths, batch_size)
        if progress is not None:
            batches = progress(batches)
        predictions: list[Any] = [None] * len(rows)
        was_training = model.training
        model.eval()
        for batch in batches:
            inputs = collate([encoded[index] for index in batch]).to(model.device)
            with torch.inference_mode():
                logits = model(**inputs).logits.float()
            # Fields of `GluePrediction` for each row of the batch.
            if self.classes:
                probabilities = logits.softmax(-1)
                columns = [
                    logits.argmax(-1).tolist(),
                    probabilities.amax(-1).tolist(),
                    probabilities.var(-1, correction=0).tolist(),
                ]
            else:
                columns = [logits.view(-1).tolist()]
            for index, *values in zip(batch, *columns, strict=True):
                predictions[index] = GluePrediction(rows[index], *values, classes=self.classes)
        model.train(was_training)
        return predictions

    def report(self, predictions: Sequence[GluePrediction]) -> dict[str, float]:
        """Compute the metrics and `num_examples`; for MNLI also per development split, such as `accuracy_matched`."""
        groups = {"": predictions}
        # Validation rows come from the training split, so they belong to no group.
        for split in GLUE_SOURCES[self.name].dev:
            group = []
            for prediction in predictions:
                if prediction.row["id"].startswith(f"{split}-"):
                    group.append(prediction)
            if 0 < len(group) < len(predictions):
                groups[split.removeprefix("dev")] = group
        report: dict[str, float] = {}
        for suffix, group in groups.items():
            if group:
                numbers = [prediction.numbers for prediction in group]
                values, labels = zip(*numbers, strict=True)
                for name, metric in self._compute_metrics(values, labels).items():
                    report[f"{name}{suffix}"] = metric
        report["num_examples"] = len(predictions)
        return report

    def _compute_metrics(self, values: Sequence[float], labels: Sequence[float]) -> dict[str, float]:
        return {name: GLUE_FIGURES[name](values, labels) for name in self.metrics}

    def details(self, predictions: Sequence[GluePrediction]) -> dict[str, Any]:
        """Return `confidence`: the variance of the class probabilities of a row, averaged over rows."""
        variances = [prediction.variance for prediction in predictions if prediction.variance is not None]
        if not variances:
            return {}
        return {"confidence": sum(variances) / len(variances)}

    def card(self) -> dict[str, Any]:
        source = GLUE_SOURCES[self.name]
        return {
            "pipeline_tag": "text-classification",
            "datasets": [HUB_ID],
            "language": "en",
            "tags": ["hf_mwp", "glue", self.name],
            "metrics": {name: [name, "num_examples"] for name in self.metrics},
            "items": "examples",
            "example": dict(zip(("text", "text_pair"), EXAMPLE[: len(source.hub_columns)], strict=False)),
        }


def _text_of(row: Mapping[str, Any]) -> str:
    """Return the one or two texts of a row as lines."""
    texts = [row["sentence1"], row["sentence2"]]
    return "\n".join(filter(None, texts))

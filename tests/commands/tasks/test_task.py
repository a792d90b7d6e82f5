"""A new task is one class: this classifier of texts is trained and measured as math word problems are."""

import io
from dataclasses import dataclass
from functools import cached_property

import pytest
import torch
from datasets import Dataset
from transformers import DataCollatorWithPadding

from hf_mwp.commands.options.parsing import read_options
from hf_mwp.commands.options.run_options import RunArguments
from hf_mwp.commands.tasks.data_options import TASK_NAMES, TaskArguments
from hf_mwp.commands.tasks.evaluation import evaluate_split
from hf_mwp.commands.tasks.task import Task
from hf_mwp.commands.terminal.console import CommandConsole, print_evaluation
from hf_mwp.commands.training import train_on_task
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import read_json
from tests.tiny import tiny_classifier, tiny_rows, tiny_tokenizer


CARD = {"pipeline_tag": "text-classification", "datasets": ["totals"], "language": "zh", "tags": []}


@dataclass(frozen=True)
class Prediction:
    is_correct: bool

    def to_dict(self):
        return {"correct": self.is_correct}

    @property
    def failure(self):
        return None if self.is_correct else ("wrong", "the other class")


class Totals(Task):
    """Whether a problem asks for a total."""

    name = "totals"
    scheme = "three seeds"
    recorded = ("threshold",)

    @cached_property
    def splits(self):
        splits = {}
        for split, num_rows, seed in (("train", 48, 1), ("validation", 6, 2), ("test", 12, 3)):
            texts = [row["text"] for row in tiny_rows(num_rows, seed)]
            labels = [int("一共" in text) for text in texts]
            splits[split] = Dataset.from_dict({"text": texts, "label": labels})
        return splits

    def build_model(self, options, **kwargs):
        tokenizer = tiny_tokenizer()
        return tiny_classifier(vocab_size=len(tokenizer), num_labels=2, max_position_embeddings=64), tokenizer

    def load_model(self, name, split="train"):
        raise UsageError(f"There is no folder {name}.")

    def prepare(self, rows, processor):
        return rows.map(lambda row: processor(row["text"]))

    def collator(self, model, processor):
        return DataCollatorWithPadding(processor)

    def predict(self, model, processor, rows, batch_size=64, progress=None, threshold=0.5):
        model.eval()
        inputs = self.collator(model, processor)([processor(row["text"]) for row in rows])
        with torch.no_grad():
            probabilities = model(**inputs).logits.softmax(-1)[:, 1].tolist()
        predictions = []
        for row, probability in zip(rows, probabilities, strict=True):
            predictions.append(Prediction((probability > threshold) == bool(row["label"])))
        return predictions

    def report(self, predictions):
        report = {"num_texts": len(predictions)}
        if predictions:
            report["accuracy"] = sum(prediction.is_correct for prediction in predictions) / len(predictions)
        return report

    def card(self):
        return CARD


@pytest.fixture
def console():
    return CommandConsole(width=120, record=True, file=io.StringIO())


def test_model_of_the_task_is_trained_and_measured(tmp_path, console):
    task = Totals()
    model, tokenizer = task.build_model(None)
    config = BaseConfig(str(tmp_path), max_steps=1, disable_tqdm=True, save_strategy="no", eval_strategy="no")
    # Below 0, all texts are predicted to ask for totals.
    config.threshold = -1.0

    def make():
        return BaseTrainer(args=config, **task.trainer_arguments(model, tokenizer)), task.data_record()

    result = train_on_task(task, make, "train", "classifier", (RunArguments(), config), console)
    for evaluation in result.evaluations.values():
        print_evaluation(console, evaluation, "classifier")
    metrics = read_json(tmp_path / "metrics.json")
    section = metrics["test"]
    assert list(section) == ["scheme", "threshold", "reports", "training_texts", "outcomes", "examples"]
    accuracy = sum(task.rows("test")["label"]) / 12
    assert section["reports"]["all problems"] == {"num_texts": 12, "accuracy": accuracy}
    assert metrics["validation"]["threshold"] == -1.0
    assert section["training_texts"]["compared_with"] == "training data"
    output = console.export_text()
    for words in ("three seeds", "texts", f"{100 * accuracy:.1f}"):
        assert words in output
    assert (tmp_path / "model.safetensors").is_file()


def test_predictions_on_training_texts_are_also_reported_separately(console):
    task = Totals()
    task.splits["test"] = task.splits["train"].select(range(3))
    # No probability is above 2, so no text is predicted to ask for a total.
    evaluation = evaluate_split(task, *task.build_model(None), "test", threshold=2.0)
    num_wrong = sum(task.rows("test")["label"])
    report = {"num_texts": 3, "accuracy": (3 - num_wrong) / 3}
    assert evaluation.reports["exact text in training split"] == report
    assert evaluation.reports["exact text not in training split"] == {"num_texts": 0}
    assert [record["exact_text_in_training_split"] for record in evaluation.records()] == [True] * 3
    print_evaluation(console, evaluation, "classifier")
    assert "the other class" in console.export_text()


def test_record_has_the_splits_and_the_card():
    used = {"train": 48, "validation": 6, "test": 12}
    assert Totals().data_record() == {"dataset": "totals", "scheme": "three seeds", "used": used, "card": CARD}


def test_splits_without_rows_are_named():
    task = Totals()
    del task.splits["train"]
    with pytest.raises(UsageError, match="totals .*train.*validation, test"):
        task.rows("train")
    with pytest.raises(UsageError, match=r"totals .*'train'.*validation, test.*--split"):
        evaluate_split(task, None, None, "train")
    empty = task.splits["validation"].select([])
    task.splits["validation"] = empty
    assert task.rows("validation", needed=False) is None
    assert len(task.rows("test")) == 12
    with pytest.raises(UsageError, match=r"totals .*'validation'.* test.*--split"):
        task.rows("validation")
    task.splits["test"] = empty
    with pytest.raises(UsageError, match=r"totals .*'dev'.*different data"):
        task.rows("dev")


def test_added_task_is_a_choice_of_the_command_line():
    with pytest.raises(UsageError, match="totals"):
        read_options("train", [TaskArguments], {"task": "totals"})
    TASK_NAMES.append("totals")
    try:
        assert read_options("train", [TaskArguments], {"task": "totals"})[0].task == "totals"
    finally:
        TASK_NAMES.remove("totals")

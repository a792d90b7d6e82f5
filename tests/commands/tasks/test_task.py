"""A task is one class: what stands here of a classifier of texts trains and is measured as math word problems are."""

import io
import json
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
from tests.tiny import tiny_classifier, tiny_rows, tiny_tokenizer


@dataclass(frozen=True)
class Prediction:
    right: bool

    def to_dict(self):
        return {"right": self.right}

    @property
    def failure(self):
        return None if self.right else ("wrong", "the other class")


class Totals(Task):
    """Whether a problem asks for a total."""

    name = "totals"
    scheme = "three seeds"
    recorded = ("threshold",)

    @cached_property
    def splits(self):
        parts = {}
        for part, count, seed in (("train", 48, 1), ("validation", 6, 2), ("test", 12, 3)):
            texts = [row["text"] for row in tiny_rows(count, seed)]
            parts[part] = Dataset.from_dict({"text": texts, "label": [int("一共" in text) for text in texts]})
        return parts

    def build_model(self, options, **kwargs):
        tokenizer = tiny_tokenizer()
        return tiny_classifier(vocab_size=len(tokenizer), num_labels=2, max_position_embeddings=64), tokenizer

    def load_model(self, name, split="train"):
        raise UsageError(f"There is no folder {name}.")

    def prepare(self, rows, processor):
        return rows.map(lambda row: processor(row["text"]))

    def collator(self, model, processor):
        return DataCollatorWithPadding(processor)

    def predict(self, model, processor, rows, batch_size=4, progress=None, threshold=0.5):
        batches = [rows[start : start + batch_size] for start in range(0, len(rows), batch_size)]
        found = []
        model.eval()
        for batch in progress(batches) if progress else batches:
            inputs = self.collator(model, processor)([processor(row["text"]) for row in batch])
            with torch.no_grad():
                shares = model(**inputs).logits.softmax(-1)[:, 1].tolist()
            found += [
                Prediction((share > threshold) == bool(row["label"])) for share, row in zip(shares, batch, strict=True)
            ]
        return found

    def report(self, predictions):
        right = sum(prediction.right for prediction in predictions)
        return {"num_texts": len(predictions)} | ({"accuracy": right / len(predictions)} if predictions else {})

    def card(self):
        return {"pipeline_tag": "text-classification", "datasets": ["totals"], "language": "zh", "tags": []}


@pytest.fixture
def console():
    return CommandConsole(width=120, record=True, file=io.StringIO())


def test_it_trains_and_is_measured(tmp_path, console):
    task = Totals()
    model, tokenizer = task.build_model(None)
    rates = {"learning_rate": 3e-3, "num_train_epochs": 20, "per_device_train_batch_size": 4}
    config = BaseConfig(output_dir=str(tmp_path), disable_tqdm=True, save_strategy="no", eval_strategy="no", **rates)
    config.threshold = 0.5

    def make():
        return BaseTrainer(args=config, **task.trainer_arguments(model, tokenizer)), task.data_record()

    result = train_on_task(task, make, "train", "classifier", (RunArguments(), config), console)
    for evaluation in result.evaluations.values():
        print_evaluation(console, evaluation, "classifier")
    figures = json.loads((tmp_path / "metrics.json").read_text())
    assert list(figures["test"]) == ["scheme", "threshold", "reports", "training_texts", "outcomes", "examples"]
    # Two words tell the classes apart.
    assert figures["test"]["reports"]["all problems"] == {"num_texts": 12, "accuracy": 1.0}
    assert figures["validation"]["threshold"] == 0.5
    assert figures["test"]["training_texts"]["compared_with"] == "training data"
    shown = console.export_text()
    assert "three seeds" in shown and "texts" in shown and "100.0" in shown
    assert (tmp_path / "model.safetensors").is_file()


def test_its_predictions_are_told_apart_by_what_was_trained_on(console):
    task = Totals()
    task.splits["test"] = task.splits["train"].select(range(3))
    evaluation = evaluate_split(task, *task.build_model(None), "test", threshold=2.0)
    # No share is above 2, so all are held for no totals.
    wrong = sum(task.rows("test")["label"])
    assert evaluation.reports["exact text in training split"] == {"num_texts": 3, "accuracy": (3 - wrong) / 3}
    assert evaluation.reports["exact text not in training split"] == {"num_texts": 0}
    assert [record["exact_text_in_training_split"] for record in evaluation.records()] == [True] * 3
    print_evaluation(console, evaluation, "classifier")
    assert "the other class" in console.export_text()


def test_its_record_and_its_parts():
    task = Totals()
    assert task.data_record() == {
        "dataset": "totals",
        "scheme": "three seeds",
        "used": {"train": 48, "validation": 6, "test": 12},
        "card": {"pipeline_tag": "text-classification", "datasets": ["totals"], "language": "zh", "tags": []},
    }
    del task.splits["train"]
    with pytest.raises(UsageError, match="totals .*train.*validation, test"):
        task.rows("train")
    with pytest.raises(UsageError, match=r"totals .*'train'.*validation, test.*--split"):
        evaluate_split(task, None, None, "train")
    task.splits["validation"] = task.splits["validation"].select([])
    assert task.rows("validation", needed=False) is None and len(task.rows("test")) == 12
    with pytest.raises(UsageError, match=r"totals .*train.* test\b"):
        task.rows("train")
    with pytest.raises(UsageError, match=r"totals .*'validation'.* test.*--split"):
        task.rows("validation")
    task.splits["train"] = task.splits["test"] = task.splits["validation"]
    with pytest.raises(UsageError, match=r"totals .*train.*different data"):
        task.rows("train")
    with pytest.raises(UsageError, match=r"totals .*'dev'.*different data"):
        task.rows("dev")


def test_an_added_task_is_a_choice_of_the_command_line():
    TASK_NAMES.append("totals")
    try:
        assert read_options("train", [TaskArguments], {"task": "totals"})[0].task == "totals"
    finally:
        TASK_NAMES.remove("totals")
    with pytest.raises(UsageError, match="totals"):
        read_options("train", [TaskArguments], {"task": "totals"})

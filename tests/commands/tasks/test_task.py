"""A new task is one class: its data are split and its predictions measured as those of math word problems are."""

import io
from dataclasses import dataclass
from functools import cached_property

import pytest
from datasets import Dataset

from hf_mwp.commands.options.parsing import read_options
from hf_mwp.commands.tasks.data_options import TASK_NAMES, TaskArguments
from hf_mwp.commands.tasks.evaluation import evaluate_split
from hf_mwp.commands.tasks.glue_files import GLUE_SOURCES, GlueSource
from hf_mwp.commands.tasks.make_task import TASKS, add_glue_task, add_task, make_task
from hf_mwp.commands.tasks.task import Task
from hf_mwp.commands.terminal.console import CommandConsole, print_evaluation
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_classifier, tiny_rows


CARD = {"pipeline_tag": "text-classification", "datasets": ["totals"], "language": "zh", "tags": []}


@dataclass(frozen=True)
class Prediction:
    is_correct: bool
    kind: str = "any kind"

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

    build_model = load_model = collator = None

    def predict(self, model, processor, rows, batch_size=64, progress=None, threshold=0.5):
        # As if all probabilities were 0.5.
        return [Prediction((0.5 > threshold) == bool(row["label"])) for row in rows]

    def report(self, predictions):
        report = {"num_texts": len(predictions)}
        if predictions:
            report["accuracy"] = sum(prediction.is_correct for prediction in predictions) / len(predictions)
        return report

    def card(self):
        return CARD


def test_predictions_on_training_texts_are_also_reported_separately():
    console = CommandConsole(width=120, record=True, file=io.StringIO())
    task = Totals()
    task.splits["test"] = task.splits["train"].select(range(3))
    evaluation = evaluate_split(task, tiny_classifier(), None, "test", threshold=0.9)
    assert evaluation.record["threshold"] == 0.9
    num_wrong = sum(task.rows("test")["label"])
    report = {"num_texts": 3, "accuracy": (3 - num_wrong) / 3}
    assert evaluation.reports["exact text in training split"] == report
    assert evaluation.reports["exact text not in training split"] == {"num_texts": 0}
    assert evaluation.reports["any kind"] == report
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


@pytest.fixture
def added_tasks():
    """Removes the tasks that a test adds."""
    yield
    for name in ("totals", "reviews"):
        TASKS.pop(name, None)
        GLUE_SOURCES.pop(name, None)
        if name in TASK_NAMES:
            TASK_NAMES.remove(name)


def test_added_task_is_a_choice_of_the_command_line(added_tasks):
    with pytest.raises(UsageError, match="totals"):
        read_options("train", [TaskArguments], {"task": "totals"})
    add_task("totals", Totals)
    add_task("totals", Totals)
    assert read_options("train", [TaskArguments], {"task": "totals"})[0].task == "totals"
    assert TASK_NAMES.count("totals") == 1


def test_task_must_be_a_class_with_a_new_name():
    with pytest.raises(ValueError, match="already has the class GlueTask"):
        add_task("rte", Totals)
    with pytest.raises(ValueError, match="Expected a class derived from `Task`, got <class 'dict'>"):
        add_task("totals", dict)
    with pytest.raises(ValueError, match="`name` is empty"):
        add_task("", Totals)
    assert "totals" not in TASK_NAMES


def test_added_files_in_the_format_of_glue_are_a_task(added_tasks, tmp_path):
    add_glue_task("reviews", GlueSource(("text",), ("bad", "good"), "reviews"))
    (tmp_path / "reviews").mkdir()
    for name in ("train", "dev"):
        rows = "text\tlabel\nA charming film\t1\nA dull film\t0\n"
        (tmp_path / "reviews" / f"{name}.tsv").write_text(rows, encoding="utf-8")
    task = make_task(TaskArguments(task="reviews", data_dir=str(tmp_path), validation_fraction=0))
    assert task.rows("test")["text"][:] == ["A charming film", "A dull film"]

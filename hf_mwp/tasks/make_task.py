"""Function that creates the task selected by the options, and helpers for its data."""

from typing import Any

from ..data.datasets.glue import GLUE_SOURCES
from .data_options import MATH_SEQ2SEQ, SEQ2SEQ, TaskArguments
from .glue import GlueTask
from .math_word_problems import MathWordProblems, once
from .reporter import Reporter
from .seq2seq import MathSeq2Seq, Seq2SeqTask
from .task import Task


TASKS: dict[str | None, type[Task]] = {
    None: MathWordProblems,
    **dict.fromkeys(GLUE_SOURCES, GlueTask),
    SEQ2SEQ: Seq2SeqTask,
    MATH_SEQ2SEQ: MathSeq2Seq,
}


def make_task(options: TaskArguments) -> Task:
    """Create the task selected by `options.task`, by default math word problems."""
    return TASKS[options.task](options)


def tell_data(task: Task, reporter: Reporter) -> None:
    """Print the report on the data, only once for the same data within [`keep_loaded`]."""
    with reporter.status("Reading the data"):
        text = str(task.load_report or f"{task.name}, split {task.scheme}")
    once(("told", text), lambda: reporter.print(text, markup=False))


def data_record(task: Task) -> dict[str, Any]:
    """Return the content of a run's `data.json`, which is used for the model card."""
    used = {split: len(rows) for split, rows in task.splits.items()}
    record = {"dataset": task.name, "scheme": task.scheme, "used": used, "card": task.card()}
    return record | ({} if task.load_report is None else {"report": task.load_report.to_dict()})

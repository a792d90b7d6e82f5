"""Creation of the task that options name."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ..data.glue.glue_sources import GLUE_SOURCES
from ..options import default_of
from ..usage_error import UsageError
from .data_options import MATH_SEQ2SEQ, SEQ2SEQ, TaskArguments
from .glue import GlueTask
from .math_word_problems import MathWordProblems, once
from .reporter import Reporter
from .seq2seq import MathSeq2Seq, Seq2SeqTask
from .task import Task


if TYPE_CHECKING:
    from ..trainers.base_config import BaseConfig

TASKS: dict[str | None, type[Task]] = {
    None: MathWordProblems,
    **dict.fromkeys(GLUE_SOURCES, GlueTask),
    SEQ2SEQ: Seq2SeqTask,
    MATH_SEQ2SEQ: MathSeq2Seq,
}


def make_task(options: TaskArguments, config: BaseConfig | None = None) -> Task:
    """
    Return the task that options name, math word problems by default. Its [`~Task.defaults_of`] replace those of a
    trainer's config; `UsageError` if that chooses the best checkpoint by a metric that the task does not have.
    """
    task = TASKS[options.task](options)
    if config is not None:
        adapt_config(task, config)
    return task


def adapt_config(task: Task, config: BaseConfig) -> None:
    """Set the task's defaults in the fields of a config that have the usual ones."""
    usual = {field.name: default_of(field) for field in fields(config)}
    for name, value in task.defaults_of(config).items():
        if name in usual and getattr(config, name) == usual[name]:
            setattr(config, name, value)
    chosen, known = config.metric_for_best_model, ["loss", *task.figures]
    if task.figures and chosen is not None and chosen.removeprefix("eval_") not in known:
        raise UsageError(f"`metric_for_best_model`: {task.name} has no {chosen!r}, but {', '.join(known)}.")


def tell_data(task: Task, reporter: Reporter) -> None:
    """Print the report of the data, only once for the same data within [`keep_loaded`]."""
    with reporter.status("Reading the data"):
        told = str(task.load_report or f"{task.name}, split {task.scheme}")
    once(("told", told), lambda: reporter.print(told, markup=False))


def data_record(task: Task) -> dict[str, Any]:
    """Return the content of a run's `data.json`, from which a model card is made."""
    used = {split: len(rows) for split, rows in task.splits.items()}
    record = {"dataset": task.name, "scheme": task.scheme, "used": used, "card": task.card()}
    return record | ({} if task.load_report is None else {"report": task.load_report.to_dict()})

"""The tasks that `--task` names."""

from __future__ import annotations

from ...data.glue.glue_sources import GLUE_SOURCES
from ...tasks.data_options import TaskArguments
from ...tasks.glue import GlueTask
from ...tasks.math_word_problems import MathWordProblems
from ...tasks.task import Task


TASKS: dict[str | None, type[Task]] = {None: MathWordProblems, **dict.fromkeys(GLUE_SOURCES, GlueTask)}


def make_task(options: TaskArguments) -> Task:
    """The task that options name: math word problems, unless they name another."""
    return TASKS[options.task](options)

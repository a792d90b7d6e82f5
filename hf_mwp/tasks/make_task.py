"""Tasks by their names."""

from __future__ import annotations

from ..data.glue.glue_sources import GLUE_SOURCES
from .data_options import TaskArguments
from .glue import GlueTask
from .math_word_problems import MathWordProblems
from .task import Task


TASKS: dict[str | None, type[Task]] = {None: MathWordProblems, **dict.fromkeys(GLUE_SOURCES, GlueTask)}


def make_task(options: TaskArguments) -> Task:
    """Return the task that options name, math word problems by default."""
    return TASKS[options.task](options)

"""Functions that create the task selected by the options, and print the report on its data."""

from .data_options import MATH_SEQ2SEQ, SEQ2SEQ, TaskArguments
from .glue import GlueTask
from .glue_files import GLUE_SOURCES
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


def print_data_report(task: Task, reporter: Reporter) -> None:
    """Print the report on the data, only once for the same data within [`keep_loaded`]."""
    with reporter.status("Reading the data"):
        text = str(task.load_report or f"{task.name}, split {task.scheme}")
    once(("told", text), lambda: reporter.print(text))

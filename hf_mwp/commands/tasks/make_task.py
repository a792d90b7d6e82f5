"""Function that creates the task selected by the options."""

from .data_options import MATH_SEQ2SEQ, SEQ2SEQ, TaskArguments
from .glue import GlueTask
from .glue_files import GLUE_SOURCES
from .math_word_problems import MathWordProblems
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

"""Functions that create the task selected by the options, and add tasks."""

from hf_mwp.utils.checked_types import checked

from .data_options import MATH_SEQ2SEQ, SEQ2SEQ, TASK_NAMES, TaskArguments
from .glue import GlueTask
from .glue_files import GLUE_SOURCES, GlueSource
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


@checked
def add_task(name: str, task: type[Task]) -> None:
    """Add a task, which `--task NAME` of the commands then selects. Call it before the command line runs, in a script
    that ends with `hf_mwp.commands.main.main()`. A task may be added again after a change.

    Args:
        name (`str`): Value of `--task`.
        task (`type[Task]`): Class derived from [`Task`].

    Raises:
        ValueError: `task` is another class, or a different task has this name.
        TypeError: An argument has another type.
    """
    if not name:
        raise ValueError("`name` is empty. Pass the value of `--task` that selects the task.")
    if not issubclass(task, Task):
        raise ValueError(f"Expected a class derived from `Task`, got {task!r}. Pass the class itself.")
    present = TASKS.get(name, task)
    if present.__qualname__ != task.__qualname__:
        raise ValueError(f"The task {name!r} already has the class {present.__name__}. Choose another name.")
    TASKS[name] = task
    if name not in TASK_NAMES:
        TASK_NAMES.append(name)


@checked
def add_glue_task(name: str, source: GlueSource) -> None:
    """Add a classification or regression of texts, or of pairs of texts, with files in the format of GLUE, which
    [`load_glue`] and `--task NAME` of the commands then read; see [`add_task`].

    Args:
        name (`str`): Value of `--task`.
        source ([`GlueSource`]): Folder, columns and classes of the files.

    Raises:
        ValueError: A task of another kind has this name.
    """
    add_task(name, GlueTask)
    GLUE_SOURCES[name] = source

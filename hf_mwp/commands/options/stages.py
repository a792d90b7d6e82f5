"""Table of the commands that can be stages of a recipe, with their option dataclasses."""

from collections.abc import Mapping
from dataclasses import Field
from functools import cache
from importlib import import_module
from typing import Any

from hf_mwp.utils.option import options_in


TASK, STUDENT = "commands.tasks.data_options.TaskArguments", "commands.building.student.StudentArguments"
RUN = "commands.options.run_options.RunArguments"
# Modules are imported when they are needed, because they import Transformers.
STAGES: Mapping[str, tuple[str, ...]] = {
    "pretrain": (
        "commands.pretrain.CorpusArguments",
        "commands.building.pretraining.PretrainingArguments",
        "commands.options.run_options.ResumeArguments",
    ),
    "train": (TASK, "commands.building.solver.SolverArguments", RUN),
    "distill": (TASK, "commands.building.student.TeacherArguments", STUDENT, RUN),
    "prune": (TASK, "commands.prune.PruneArguments"),
    "stark": (TASK, "commands.stark.StarkArguments", STUDENT),
    "mix": ("commands.mix.MixArguments",),
    "pseudo-label": ("commands.options.label_options.LabelArguments",),
    "rerank": ("commands.rerank.RerankArguments", "commands.tasks.data_options.DataArguments"),
    "evaluate": ("commands.evaluate.EvaluateArguments", "commands.tasks.data_options.MeasuredTaskArguments"),
    "export": ("commands.export.ExportArguments",),
    "card": ("commands.hub.card_arguments.CardArguments",),
}
# Commands whose last options are the config of a trainer. Except for pretraining, the task chooses the config class.
TRAINING_COMMANDS = ("pretrain", "train", "distill", "prune", "stark")


def types_of(command: str, task: Any = None, trainer: bool = True) -> list[type]:
    """Return the option dataclasses of a command, with the config of its trainer for a value of `--task` if `trainer`;
    empty if it is no stage."""
    types = [_load(name) for name in STAGES.get(command, ())]
    if trainer and trains(command):
        types.append(_config_class(command, task))
    return types


def _config_class(command: str, task: Any) -> type:
    if command == "pretrain":
        return _load("solver.training.PreTrainingConfig")
    tasks = _load("commands.tasks.make_task.TASKS")
    # The parser refuses an unknown task later.
    is_known = isinstance(task, str) and task in tasks
    return tasks[task if is_known else None].configs[command]


def _load(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(import_module(f"hf_mwp.{module}"), attribute)


def options_of(command: str, task: Any = None) -> dict[str, Field]:
    """Return the options of a command by name, for a value of `--task`; empty if the command cannot be a stage."""
    return _options_of(command, task if isinstance(task, str) else None)


@cache
def _options_of(command: str, task: str | None) -> dict[str, Field]:
    return options_in(*types_of(command, task))


def trains(command: str) -> bool:
    """Return whether the command trains a model, and can run in several processes."""
    return command in TRAINING_COMMANDS

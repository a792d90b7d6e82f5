"""Options of the commands, which are dataclasses in the tuple `OPTIONS` of a command's module."""

from dataclasses import Field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from hf_mwp.utils.option import options_in


# Commands that can be stages of a recipe.
STAGES = (
    *("pretrain", "train", "distill", "prune", "stark", "mix", "pseudo-label", "rerank", "evaluate", "export"),
    "card",
)
# Commands whose last options are the config of a trainer. Except for pretraining, the task chooses the config class.
TRAINING_COMMANDS = ("pretrain", "train", "distill", "prune", "stark")


def command_module(command: str) -> ModuleType:
    """Return the module of a command, which has its options and its function `run`."""
    return import_module(f"hf_mwp.commands.{command.replace('-', '_')}")


def types_of(command: str, task: Any = None) -> list[type]:
    """Return the option dataclasses of a command, with the config of its trainer for a value of `--task`."""
    types = list(command_module(command).OPTIONS)
    if trains(command):
        types.append(_config_class(command, task))
    return types


def _config_class(command: str, task: Any) -> type:
    # Imported here, because trainers and tasks import Transformers.
    if command == "pretrain":
        from hf_mwp.solver.training import PreTrainingConfig

        return PreTrainingConfig
    from hf_mwp.commands.tasks.make_task import TASKS

    # The parser refuses an unknown task later.
    is_known = isinstance(task, str) and task in TASKS
    return TASKS[task if is_known else None].configs[command]


def options_of(command: str, task: Any = None) -> dict[str, Field]:
    """Return the options of a command by name, for a value of `--task`; empty if the command cannot be a stage."""
    return _options_of(command, task if isinstance(task, str) else None)


@cache
def _options_of(command: str, task: str | None) -> dict[str, Field]:
    if command not in STAGES:
        return {}
    return options_in(*types_of(command, task))


def trains(command: str) -> bool:
    """Return whether the command trains a model, and can run in several processes."""
    return command in TRAINING_COMMANDS

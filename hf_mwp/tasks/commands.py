"""Options of the commands: the dataclasses of each that may be a stage of a recipe, read from files and flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import Field
from functools import cache, partial
from importlib import import_module
from typing import Any

from ..options import options_in
from ..options.parsing import parse


# Modules are imported when they are needed: those of trainers' configs import Transformers.
STAGES: Mapping[str, tuple[str, ...]] = {
    "pretrain": (
        "tasks.pretraining_corpus.CorpusArguments",
        "building.pretraining.PretrainingArguments",
        "tasks.run_arguments.ResumeArguments",
        "trainers.PreTrainingConfig",
    ),
    "train": (
        "tasks.data_options.TaskArguments",
        "building.solver.SolverArguments",
        "tasks.run_arguments.RunArguments",
        "trainers.SolverTrainingConfig",
    ),
    "distill": (
        "tasks.data_options.TaskArguments",
        "building.student.TeacherArguments",
        "building.student.StudentArguments",
        "tasks.run_arguments.RunArguments",
        "trainers.DistillationConfig",
    ),
    "prune": (
        "tasks.data_options.TaskArguments",
        "tasks.pruning.PruneArguments",
        "trainers.RecursiveDistillationConfig",
    ),
    "stark": (
        "tasks.data_options.TaskArguments",
        "tasks.sparse_teachers.StarkArguments",
        "building.student.StudentArguments",
        "trainers.StarkConfig",
    ),
    "mix": ("building.mixing.MixArguments",),
    "pseudo-label": ("solving.search_options.LabelArguments",),
    "rerank": ("solving.search_options.RerankArguments", "tasks.data_options.DataArguments"),
    "evaluate": ("solving.search_options.EvaluateArguments", "tasks.data_options.MeasuredTaskArguments"),
    "export": ("export.export_arguments.ExportArguments",),
    "card": ("hub.card_arguments.CardArguments",),
}


def parse_command(
    command: str,
    description: str,
    argv: Sequence[str],
    types: Sequence[type] | None = None,
    positional: str | None = None,
    register: bool = True,
) -> tuple[list, dict[str, Any]]:
    """
    Read the options of a command, see [`~options.parsing.parse`], and register models and pipeline with Transformers.

    Args:
        command (`str`), description (`str`), argv (`Sequence[str]`): The command and its arguments.
        types (`Sequence[type]`, *optional*): Dataclasses of the options, for a command that cannot be a stage.
        positional (`str`, *optional*): Name of a list of arguments without a flag.
        register (`bool`, *optional*, defaults to `True`): Whether to register, which imports PyTorch.
    """
    common = types_of(command, trainer=False) if trains(command) else None
    types = partial(types_of, command) if types is None else types
    parsed = parse(command, description, types, argv, positional, common, commands_with)
    if register:
        import_module("hf_mwp.pipelines")
    return parsed


def types_of(command: str, trainer: bool = True) -> list[type]:
    """
    Return the dataclasses whose fields are the options of a command, none if it cannot be a stage; with
    `trainer=False` without the config of its trainer.
    """
    names = [name for name in STAGES.get(command, ()) if trainer or not name.startswith("trainers.")]
    return [getattr(import_module(f"..{name.rpartition('.')[0]}", __package__), name.split(".")[-1]) for name in names]


@cache
def options_of(command: str) -> dict[str, Field]:
    """Return the options of a command by name, none if it cannot be a stage."""
    return options_in(*types_of(command))


def commands_with(option: str) -> list[str]:
    """Return the commands that have an option."""
    return [command for command in STAGES if option in options_of(command)]


def trains(command: str) -> bool:
    """Return whether a command trains, and may run in several processes."""
    return any(name.startswith("trainers.") for name in STAGES.get(command, ()))

"""Table of the commands that can be stages of a recipe, with their option dataclasses."""

from collections.abc import Mapping
from dataclasses import Field
from functools import cache
from importlib import import_module

from .option import options_in


TASK, STUDENT = "tasks.data_options.TaskArguments", "building.student.StudentArguments"
# Modules are imported when they are needed, because the trainers' configs import Transformers.
STAGES: Mapping[str, tuple[str, ...]] = {
    "pretrain": (
        "tasks.runs.run_options.CorpusArguments",
        "building.pretraining.PretrainingArguments",
        "tasks.runs.run_options.ResumeArguments",
        "trainers.PreTrainingConfig",
    ),
    "train": (
        TASK,
        "building.solver.SolverArguments",
        "tasks.runs.run_options.RunArguments",
        "trainers.SolverTrainingConfig",
    ),
    "distill": (
        TASK,
        "building.student.TeacherArguments",
        STUDENT,
        "tasks.runs.run_options.DistillRunArguments",
        "trainers.DistillationConfig",
    ),
    "prune": (TASK, "tasks.runs.run_options.PruneArguments", "trainers.RecursiveDistillationConfig"),
    "stark": (TASK, "tasks.runs.run_options.StarkArguments", STUDENT, "trainers.StarkConfig"),
    "mix": ("building.mixing.MixArguments",),
    "pseudo-label": ("solving.search_options.LabelArguments",),
    "rerank": ("solving.search_options.RerankArguments", "tasks.data_options.DataArguments"),
    "evaluate": ("solving.search_options.EvaluateArguments", "tasks.data_options.MeasuredTaskArguments"),
    "export": ("export.export_arguments.ExportArguments",),
    "card": ("hub.card_arguments.CardArguments",),
}


def types_of(command: str, trainer: bool = True) -> list[type]:
    """Return the option dataclasses of a command, with its trainer's config if `trainer`; empty if it is no stage."""
    names = [name for name in STAGES.get(command, ()) if trainer or not name.startswith("trainers.")]
    return [getattr(import_module(f"..{name.rpartition('.')[0]}", __package__), name.split(".")[-1]) for name in names]


@cache
def options_of(command: str) -> dict[str, Field]:
    """Return the options of a command by name; empty if the command cannot be a stage."""
    return options_in(*types_of(command))


def trains(command: str) -> bool:
    """Return whether the command trains a model, and can run in several processes."""
    return any(name.startswith("trainers.") for name in STAGES.get(command, ()))

"""Table of the commands that can be stages of a recipe, with their option dataclasses."""

from collections.abc import Mapping
from dataclasses import Field
from functools import cache
from importlib import import_module

from hf_mwp.utils.option import options_in


TASK, STUDENT = "commands.tasks.data_options.TaskArguments", "commands.building.student.StudentArguments"
# Modules are imported when they are needed, because the trainers' configs import Transformers.
STAGES: Mapping[str, tuple[str, ...]] = {
    "pretrain": (
        "commands.pretrain.CorpusArguments",
        "commands.building.pretraining.PretrainingArguments",
        "commands.options.run_options.ResumeArguments",
        "solver.training.PreTrainingConfig",
    ),
    "train": (
        TASK,
        "commands.building.solver.SolverArguments",
        "commands.options.run_options.RunArguments",
        "solver.training.SolverTrainingConfig",
    ),
    "distill": (
        TASK,
        "commands.building.student.TeacherArguments",
        STUDENT,
        "commands.options.run_options.RunArguments",
        "compress.trainers.DistillationConfig",
    ),
    "prune": (TASK, "commands.prune.PruneArguments", "compress.trainers.RecursiveDistillationConfig"),
    "stark": (TASK, "commands.stark.StarkArguments", STUDENT, "compress.trainers.StarkConfig"),
    "mix": ("commands.mix.MixArguments",),
    "pseudo-label": ("commands.options.label_options.LabelArguments",),
    "rerank": ("commands.rerank.RerankArguments", "commands.tasks.data_options.DataArguments"),
    "evaluate": (
        "commands.evaluate.EvaluateArguments",
        "commands.tasks.data_options.MeasuredTaskArguments",
    ),
    "export": ("commands.export.ExportArguments",),
    "card": ("commands.hub.card_arguments.CardArguments",),
}


def _is_config(name: str) -> bool:
    return ".trainers." in name or ".training." in name


def types_of(command: str, trainer: bool = True) -> list[type]:
    """Return the option dataclasses of a command, with its trainer's config if `trainer`; empty if it is no stage."""
    names = [name for name in STAGES.get(command, ()) if trainer or not _is_config(name)]
    return [
        getattr(import_module(f"...{name.rpartition('.')[0]}", __package__), name.split(".")[-1]) for name in names
    ]


@cache
def options_of(command: str) -> dict[str, Field]:
    """Return the options of a command by name; empty if the command cannot be a stage."""
    return options_in(*types_of(command))


def trains(command: str) -> bool:
    """Return whether the command trains a model, and can run in several processes."""
    return any(_is_config(name) for name in STAGES.get(command, ()))

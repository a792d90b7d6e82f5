"""`hf-mwp train`: fine-tune a solver on a data set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ....building.solver import SolverArguments
from ....runs.run_arguments import RunArguments
from ....runs.stage_arguments import types_of
from ....tasks.data_options import TaskArguments
from ....tasks.task import Task
from ...options.parsing import parse
from ...options.tasks import make_task
from ...options.training_options import SolverTrainingOptions
from .training_run import TaskTraining


if TYPE_CHECKING:
    from ....trainers.base_trainer import BaseTrainer

COMMON = (TaskArguments, SolverArguments, SolverTrainingOptions, RunArguments)


argument_types = partial(types_of, "train")


def run(argv: list[str]) -> int:
    """Trains a solver; see `hf-mwp train --help`. Also runs under `torchrun` and `accelerate launch`."""
    (data_args, solver_args, run_args, config), values = parse(
        "train",
        "Fine-tune a solver of math word problems: an encoder, pretrained or from random weights, and a tree decoder. "
        "With --task a classifier of texts, for a task of GLUE.",
        argument_types,
        argv,
        common=COMMON,
    )

    def make(task: Task) -> BaseTrainer:
        return task.make_trainer(config, *task.build_model(solver_args))

    task = make_task(data_args)
    return TaskTraining(task, make, command="train", name=task.kind, values=values, config=config, args=run_args).run()

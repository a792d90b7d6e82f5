"""`hf-mwp train`: fine-tune a solver on a data set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....tasks.make_task import make_task
from ....tasks.task import Task
from ...options import parse_command
from .training_run import TaskTraining


if TYPE_CHECKING:
    from ....trainers.base_trainer import BaseTrainer


def run(argv: list[str]) -> int:
    """Trains a solver; see `hf-mwp train --help`. Also runs under `torchrun` and `accelerate launch`."""
    (data_args, solver_args, run_args, config), values = parse_command(
        "train",
        "Fine-tune a solver of math word problems: an encoder, pretrained or from random weights, and a tree decoder. "
        "With --task a classifier of texts, for a task of GLUE.",
        argv,
    )

    def make(task: Task) -> BaseTrainer:
        return task.make_trainer(config, *task.build_model(solver_args))

    task = make_task(data_args)
    return TaskTraining(task, make, command="train", name=task.kind, values=values, config=config, args=run_args).run()

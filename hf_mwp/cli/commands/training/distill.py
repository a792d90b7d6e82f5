"""`hf-mwp distill`: train a student solver after a teacher solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....tasks.make_task import make_task
from ....tasks.task import Task
from ...options import parse_command
from ..recipes.run import is_recipe
from ..recipes.run import run as run_stages
from .training_run import TaskTraining


if TYPE_CHECKING:
    from ....trainers import DistillationTrainer


def run(argv: list[str]) -> int:
    """
    Distils a student, or runs a recipe if the configuration file has `stages`; see `hf-mwp distill --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "distill")
    (data_args, teacher_args, student_args, run_args, config), values = parse_command(
        "distill",
        "Train a student solver, or with --task a classifier of texts, after a frozen teacher, or several: its "
        "predictions, hidden states and embeddings. With a --config that has `stages`, run these one after another "
        "(--budget, --dry_run, --variable, --stage.option).",
        argv,
    )

    def make(task: Task) -> DistillationTrainer:
        from ....trainers import DistillationTrainer
        from ....trainers.distillation.default_objectives import default_objectives, show_attention

        teachers, processors = zip(*map(task.load_model, teacher_args.teachers), strict=True)
        for name, each in zip(teacher_args.teachers, processors, strict=True):
            task.check_training(each, name)
        student, processor = task.make_student(teachers[0], processors[0], student_args)
        show_attention(default_objectives(config), teachers[0], student)
        return DistillationTrainer(
            teacher_model=teachers,
            teacher_processing_class=processors,
            args=config,
            **task.trainer_arguments(student, processor),
        )

    task = make_task(data_args)
    return TaskTraining(
        task, make, command="distill", name="student", values=values, config=config, args=run_args
    ).run()

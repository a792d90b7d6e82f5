"""`hf-mwp distill`: train a student solver after a teacher solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...building.solver import load_solver
from ...building.student import StudentArguments, make_student
from ...option_roles import Role, option
from ...runs.run_arguments import RunArguments
from ...tasks.data_options import DataArguments
from ...tasks.math_word_problems import MathWordProblems
from ..options.parsing import parse
from ..options.training_options import DistillationOptions
from .run import is_recipe
from .run import run as run_stages
from .training_run import TaskTraining


if TYPE_CHECKING:
    from ...trainers import DistillationTrainer


@dataclass
class TeacherArguments:
    """Whom the student learns from."""

    _argument_group_name = "teacher"

    teacher: str | None = option(
        None, "Folder or Hub id of a trained solver (must be given).", Role.SOLVER | Role.COMMON
    )

    def __post_init__(self):
        if self.teacher is None:
            raise ValueError("a `teacher` must be given: the folder or Hub id of a trained solver.")


COMMON = (DataArguments, TeacherArguments, StudentArguments, DistillationOptions, RunArguments)


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    from ...trainers import DistillationConfig

    return [DataArguments, TeacherArguments, StudentArguments, RunArguments, DistillationConfig]


def run(argv: list[str]) -> int:
    """
    Distils a student, or runs a recipe if the configuration file has `stages`; see `hf-mwp distill --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "distill")
    (data_args, teacher_args, student_args, run_args, config), values = parse(
        "distill",
        "Train a student solver after a frozen teacher solver: its predictions, hidden states and embeddings. With a "
        "--config that has `stages`, run these one after another (--budget, --dry_run, --variable, --stage.option).",
        argument_types,
        argv,
        common=COMMON,
    )

    def make(data: MathWordProblems) -> DistillationTrainer:
        from ...trainers import DistillationTrainer
        from ...trainers.distillation.default_objectives import default_objectives

        teacher, processor = load_solver(teacher_args.teacher)
        student = make_student(teacher, processor, data.train, student_args)
        objectives = default_objectives(config)
        if any("output_attentions" in objective.options for objective in objectives):
            for model in (teacher, student):
                # No other attention gives matrices.
                model.set_attn_implementation("eager")
        return DistillationTrainer(
            model=student,
            teacher_model=teacher,
            args=config,
            objectives=objectives,
            train_dataset=data.train,
            eval_dataset=data.validation,
            processing_class=processor,
        )

    task = MathWordProblems(data_args)
    return TaskTraining(
        task, make, command="distill", name="student", values=values, config=config, args=run_args
    ).run()

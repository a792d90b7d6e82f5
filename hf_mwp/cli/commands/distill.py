"""`hf-mwp distill`: train a student solver after a teacher solver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...building.distilled_student import make_student
from ...building.solver_loading import load_solver
from ...building.student_options import StudentArguments
from ...runs.run_arguments import RunArguments
from ...tasks.data_options import DataArguments
from ...tasks.problem_data import ProblemData
from ..options.parsing import parse
from ..options.training_options import DistillationOptions
from .run import is_recipe
from .run import run as run_stages
from .training import run_command


if TYPE_CHECKING:
    from ...trainers import DistillationTrainer

COMMON = {
    DataArguments: ("dataset", "fold", "extra_train"),
    StudentArguments: ("teacher", "student", "student_encoder", "student_start", "student_layers"),
    DistillationOptions: (
        "output_dir",
        "num_train_epochs",
        "per_device_train_batch_size",
        "learning_rate",
        "temperature",
        "soft_label_weight",
        "hidden_loss",
        "cache_teacher_outputs",
        "eval_strategy",
        "save_strategy",
        "seed",
    ),
    RunArguments: ("resume", "overwrite"),
}


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    from ...trainers import DistillationConfig

    return [DataArguments, StudentArguments, RunArguments, DistillationConfig]


def run(argv: list[str]) -> int:
    """
    Distils a student, or runs a recipe if the configuration file has `stages`; see `hf-mwp distill --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "distill")
    (data_args, student_args, run_args, config), values = parse(
        "distill",
        "Train a student solver after a frozen teacher solver: its predictions, hidden states and embeddings. With a "
        "--config that has `stages`, run these one after another (--budget, --dry_run, --variable, --stage.option).",
        argument_types,
        argv,
        common=COMMON,
    )

    def make_trainer(data: ProblemData) -> DistillationTrainer:
        from ...trainers import DistillationTrainer
        from ...trainers.default_objectives import default_objectives

        teacher, processor = load_solver(student_args.teacher)
        student = make_student(student_args, teacher, processor, data.train)
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

    return run_command("distill", "student", values, data_args, run_args, config, make_trainer)

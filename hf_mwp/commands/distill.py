"""
Distil one or more frozen teachers into a student solver or, with --task, into a different model such as a text
classifier, using predictions, hidden states and embeddings. --hidden_loss, --prediction_loss, --temperature and
--layer_mapping choose what the student learns, --cache_teacher_outputs runs the teacher once.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from .building.student import StudentArguments, TeacherArguments
from .building.student_shape import apply_size_targets
from .options.run_options import RunArguments
from .tasks.data_options import TaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, print_result


if TYPE_CHECKING:
    from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer

    from .tasks.task import Task
    from .training import RunResult


OPTIONS = (TaskArguments, TeacherArguments, StudentArguments, RunArguments)
EXAMPLES = (
    "hf-mwp distill --teacher runs/teacher --dataset asdiv_a --student_layers 3 --output_dir runs/student",
    "hf-mwp distill --task rte --data_dir GLUE --teacher runs/classifier --hidden_loss cka --output_dir runs/small",
)


def run(console: CommandConsole, *options) -> None:
    print_result(console, distill(*options, reporter=console), "student")


def distill(
    data_args: TaskArguments,
    teacher_args: TeacherArguments,
    student_args: StudentArguments,
    run_args: RunArguments,
    config: DistillationConfig,
    reporter: Reporter = SILENT,
) -> RunResult:
    """Distil one or more frozen teachers into a student, and evaluate it: `hf-mwp distill`. The config is a
    [`SolverDistillationConfig`], or that of the task. See [`train`]."""
    from .tasks.make_task import make_task
    from .training import train_on_task

    task = make_task(data_args)
    config = task.complete(config, "distill")
    student_args = copy.copy(student_args)

    def make() -> tuple[DistillationTrainer, dict[str, Any]]:
        return make_distillation(task, teacher_args, student_args, config, reporter), task.data_record()

    options = (data_args, teacher_args, student_args, run_args, config)
    return train_on_task(task, make, "distill", "student", options, reporter)


def make_distillation(
    task: Task,
    teacher_args: TeacherArguments,
    student_args: StudentArguments,
    config: DistillationConfig,
    reporter: Reporter,
) -> DistillationTrainer:
    """Load the teachers, create the student, and return the distillation trainer."""
    from hf_mwp.compress.trainers.distillation_config import default_objectives, show_attention
    from hf_mwp.solver.metrics import describe_compression

    from .training import make_trainer

    teachers = []
    processors = []
    for name in teacher_args.teacher:
        teacher, processor = task.load_model(name)
        teachers.append(teacher)
        processors.append(processor)
    apply_size_targets(student_args, teachers[0], processors[0], config, reporter.print)
    student, processor = task.make_student(teachers[0], processors[0], student_args)
    reporter.print(describe_compression(student, teachers[0]))
    show_attention(default_objectives(config), teachers[0], student)
    return make_trainer(task, config, student, processor, teacher_model=teachers, teacher_processing_class=processors)

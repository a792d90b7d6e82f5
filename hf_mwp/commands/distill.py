"""
Distil one or more frozen teachers into a student solver or, with --task, into a different model such as a text
classifier, using predictions, hidden states and embeddings. --hidden_loss, --prediction_loss, --temperature and
--layer_mapping choose what the student learns, --cache_teacher_outputs runs the teacher once.
"""

from .building.student import StudentArguments, TeacherArguments
from .options.run_options import RunArguments
from .tasks.data_options import TaskArguments
from .terminal.console import CommandConsole, print_result


OPTIONS = (TaskArguments, TeacherArguments, StudentArguments, RunArguments)


def run(console: CommandConsole, *options) -> None:
    from . import training

    print_result(console, training.distill(*options, reporter=console), "student")

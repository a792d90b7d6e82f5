"""
Distil one or more frozen teachers into a student solver or, with --task, into a different model such as a text
classifier, using predictions, hidden states and embeddings. --hidden_loss, --prediction_loss, --temperature and
--layer_mapping choose what the student learns, --cache_teacher_outputs runs the teacher once.
"""

from . import training
from .terminal.console import CommandConsole, print_result


def run(console: CommandConsole, *options) -> None:
    print_result(console, training.distill(*options, reporter=console), "student")

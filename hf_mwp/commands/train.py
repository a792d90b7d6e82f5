"""
Fine-tune a solver of math word problems: an encoder, pretrained or with random weights, and a tree decoder. With
--task, fine-tune a text classifier for a GLUE task or a sequence-to-sequence model.
"""

from .building.solver import SolverArguments
from .options.run_options import RunArguments
from .tasks.data_options import TaskArguments
from .terminal.console import CommandConsole, print_result


OPTIONS = (TaskArguments, SolverArguments, RunArguments)


def run(console: CommandConsole, *options) -> None:
    from . import training

    result = training.train(*options, reporter=console)
    print_result(console, result, result.task.kind)

"""
Fine-tune a solver of math word problems: an encoder, pretrained or with random weights, and a tree decoder. With
--task, fine-tune a text classifier for a GLUE task or a sequence-to-sequence model.
"""

from . import training
from .terminal.console import CommandConsole, print_result


def run(console: CommandConsole, *options) -> None:
    result = training.train(*options, reporter=console)
    print_result(console, result, result.task.kind)

"""
Fine-tune a solver of math word problems: an encoder, pretrained or with random weights, and a tree decoder. With
--task, fine-tune a text classifier for a GLUE task or a sequence-to-sequence model.
"""

from ....store.runs.run_folder import describe_contents
from ....tasks.training import RunResult, train
from ...terminal.console import CommandConsole, print_evaluation


def run(console: CommandConsole, *options) -> None:
    """Train a solver, also under `torchrun` and `accelerate launch`."""
    result = train(*options, reporter=console)
    print_result(console, result, result.task.kind)


def print_result(console: CommandConsole, result: RunResult, name: str) -> None:
    """Print the metrics of a trained model and the contents of its folder."""
    for split, evaluation in result.evaluations.items():
        print_evaluation(console, evaluation, name, reasons=split == "test")
    console.print(describe_contents(result.folder, "model", "processor"))

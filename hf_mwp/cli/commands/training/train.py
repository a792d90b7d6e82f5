"""`hf-mwp train`: fine-tune a solver on a data set."""

from __future__ import annotations

from ....store.runs.run_folder import describe_contents
from ....tasks.commands import parse_command
from ....tasks.training import RunResult, train
from ...terminal.console import CommandConsole, make_console, print_evaluation


def run(argv: list[str]) -> int:
    """Train a solver; see `hf-mwp train --help`. Also runs under `torchrun` and `accelerate launch`."""
    options, values = parse_command(
        "train",
        "Fine-tune a solver of math word problems: an encoder, pretrained or from random weights, and a tree decoder. "
        "With --task a classifier of texts, for a task of GLUE.",
        argv,
    )
    console = make_console()
    result = train(*options, values=values, reporter=console)
    print_result(console, result, result.task.kind)
    return 0


def print_result(console: CommandConsole, result: RunResult, name: str) -> None:
    """Print the metrics of a trained model, and what is in its folder."""
    for split, evaluation in result.evaluations.items():
        print_evaluation(console, evaluation, name, reasons=split == "test")
    console.print(describe_contents(result.folder, "model", "processor"))

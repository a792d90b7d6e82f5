"""Commands that train models."""

from typing import Any

from ....store.runs.run_folder import describe_contents
from ...terminal.console import CommandConsole, print_evaluation


def print_result(console: CommandConsole, result: Any, name: str) -> None:
    """Print the metrics in a [`~tasks.RunResult`] and the contents of its folder."""
    for split, evaluation in result.evaluations.items():
        print_evaluation(console, evaluation, name, reasons=split == "test")
    console.print(describe_contents(result.folder, "model", "processor"))

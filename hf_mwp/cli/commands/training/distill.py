"""
Train a student solver, or with --task a classifier of texts, after a frozen teacher, or several: its predictions,
hidden states and embeddings. With a --config that has `stages`, run these one after another (--budget, --dry_run,
--variable, --stage.option).
"""

from ....tasks.training import distill
from ...terminal.console import CommandConsole
from .train import print_result


def run(options: list, values: dict, console: CommandConsole) -> None:
    """Distil a student, also under `torchrun` and `accelerate launch`."""
    print_result(console, distill(*options, values=values, reporter=console), "student")

"""`hf-mwp distill`: train a student solver after a teacher solver."""

from __future__ import annotations

from ....tasks.commands import parse_command
from ....tasks.training import distill
from ...terminal.console import make_console
from ..recipes.run import is_recipe
from ..recipes.run import run as run_stages
from .train import print_result


def run(argv: list[str]) -> int:
    """
    Distil a student, or run a recipe if the configuration file has `stages`; see `hf-mwp distill --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "distill")
    options, values = parse_command(
        "distill",
        "Train a student solver, or with --task a classifier of texts, after a frozen teacher, or several: its "
        "predictions, hidden states and embeddings. With a --config that has `stages`, run these one after another "
        "(--budget, --dry_run, --variable, --stage.option).",
        argv,
    )
    console = make_console()
    print_result(console, distill(*options, values=values, reporter=console), "student")
    return 0

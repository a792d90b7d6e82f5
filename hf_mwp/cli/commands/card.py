"""`hf-mwp card`: a model's folder as the Hub gets it, with a card made of the records of its runs."""

from __future__ import annotations

from ...tasks.commands import parse_command
from ..terminal.console import make_console


def run(argv: list[str]) -> int:
    """Write the folder; see `hf-mwp card --help`."""
    (args,), _ = parse_command(
        "card",
        "Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of "
        "the records of the runs.",
        argv,
    )
    from ...hub import make_model_folder

    make_model_folder(args)
    make_console().print(f"{args.output_dir} has weights, configuration, processor and README.md.")
    return 0

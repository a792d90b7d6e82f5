"""
Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of the records
of the runs.
"""

from ...hub.card_arguments import CardArguments
from ..terminal.console import CommandConsole


def run(console: CommandConsole, args: CardArguments) -> None:
    """Write the folder."""
    from ...hub import make_model_folder

    make_model_folder(args)
    console.print(f"{args.output_dir} has weights, configuration, processor and README.md.")

"""
Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of the records
of the runs.
"""

from ..terminal.console import CommandConsole


def run(options: list, values: dict, console: CommandConsole) -> None:
    """Write the folder."""
    (args,) = options
    from ...hub import make_model_folder

    make_model_folder(args)
    console.print(f"{args.output_dir} has weights, configuration, processor and README.md.")

"""Write a model folder for the Hub: weights in half precision, configuration, processor, and card from run records."""

from . import hub
from .hub.card_arguments import CardArguments
from .terminal.console import CommandConsole


OPTIONS = (CardArguments,)


def run(console: CommandConsole, args: CardArguments) -> None:
    hub.make_model_folder(args)
    console.print(f"{args.output_dir} contains weights, configuration, processor and README.md.")

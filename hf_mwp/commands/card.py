"""Write a model folder for the Hub: weights in half precision, configuration, processor, and card from run records."""

from . import hub
from .hub.card_arguments import CardArguments
from .terminal.console import CommandConsole


OPTIONS = (CardArguments,)
EXAMPLES = (
    "hf-mwp card --model runs/student --output_dir runs/card --model_id user/my-solver --license apache-2.0",
    "hf-mwp card --model runs/student --stages runs/teacher --evaluations runs/evaluate --output_dir runs/card",
)


def run(console: CommandConsole, args: CardArguments) -> None:
    hub.make_model_folder(args)
    console.print(f"{args.output_dir} contains weights, configuration, processor and README.md.")

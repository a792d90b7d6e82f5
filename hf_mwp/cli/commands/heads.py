"""Score the attention heads of a model, print the scores by layer, and draw them as a heat map. `hf-mwp prune` removes
the heads with the lowest scores first."""

from pathlib import Path

from ... import tasks
from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.runs.run_options import HeadsArguments
from ..terminal.console import CommandConsole, make_table


TYPES = [HeadsArguments, MeasuredTaskArguments]


def run(console: CommandConsole, args: HeadsArguments, data_args: MeasuredTaskArguments) -> None:
    folder, scores = tasks.score_heads(args, data_args)
    headings = ["layer", *(f"head {head}" for head in range(max(map(len, scores))))]
    rows = (
        (str(layer), *("-" if score is None else f"{score:#.3g}" for score in row)) for layer, row in enumerate(scores)
    )
    title = f"{args.importance} of the heads of {Path(args.model).name}"
    console.print(make_table(title, headings, rows, right=headings))
    console.print(f"{folder} contains heads.json, heads.png")

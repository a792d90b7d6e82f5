"""Score the attention heads of a model, print the scores by layer, and draw them as a heat map. `hf-mwp prune` removes
the heads with the lowest scores first."""

import math
from pathlib import Path

from . import pruning
from .run_options import HeadsArguments
from .tasks.data_options import MeasuredTaskArguments
from .terminal.console import CommandConsole, make_table


TYPES = [HeadsArguments, MeasuredTaskArguments]


def run(console: CommandConsole, args: HeadsArguments, data_args: MeasuredTaskArguments) -> None:
    folder, scores = pruning.score_heads(args, data_args)
    # Scores share a power of ten, so that the columns of twelve heads fit into 100 characters.
    largest = max((abs(score) for row in scores for score in row if score is not None), default=0)
    exponent = math.floor(math.log10(largest)) if 0 < largest < 0.1 else 0
    headings = ["layer", *map(str, range(max(map(len, scores))))]
    rows = (
        (str(layer), *("-" if score is None else f"{score * 10.0**-exponent:.2f}" for score in row))
        for layer, row in enumerate(scores)
    )
    unit = f", in units of 1e{exponent}" if exponent else ""
    title = f"{args.importance} of {Path(args.model).name} by layer (row) and head (column){unit}"
    console.print(make_table(title, headings, rows, right=headings))
    console.print(f"{folder} contains heads.json, heads.png")

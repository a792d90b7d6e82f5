"""`hf-mwp heads`: how much each attention head of a model matters."""

from __future__ import annotations

from pathlib import Path

from ...tasks.commands import parse_command
from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.pruning import HeadsArguments, score_heads
from ..terminal.console import make_console, make_table


def run(argv: list[str]) -> int:
    """Score heads and print the scores; see `hf-mwp heads --help`."""
    options, values = parse_command(
        "heads",
        "Score the attention heads of a model, print the scores by layer, and draw them as a heat map: what `hf-mwp "
        "prune` would cut first.",
        argv,
        [HeadsArguments, MeasuredTaskArguments],
    )
    console = make_console()
    folder, scores = score_heads(*options)
    headings = ["layer", *(f"head {head}" for head in range(max(map(len, scores))))]
    rows = (
        (str(layer), *("-" if score is None else f"{score:.3f}" for score in row)) for layer, row in enumerate(scores)
    )
    title = f"{values['importance']} of the heads of {Path(values['model']).name}"
    console.print(make_table(title, headings, rows, right=headings))
    console.print(f"{folder} has heads.json, heads.png")
    return 0

"""
Score the attention heads of a model, print the scores by layer, and draw them as a heat map. `hf-mwp prune` removes
the lowest first.
"""

from pathlib import Path

from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.pruning import HeadsArguments, score_heads
from ..terminal.console import CommandConsole, make_table


TYPES = [HeadsArguments, MeasuredTaskArguments]


def run(options: list, values: dict, console: CommandConsole) -> None:
    """Score heads and print the scores."""
    folder, scores = score_heads(*options)
    headings = ["layer", *(f"head {head}" for head in range(max(map(len, scores))))]
    rows = (
        (str(layer), *("-" if score is None else f"{score:.3f}" for score in row)) for layer, row in enumerate(scores)
    )
    title = f"{values['importance']} of the heads of {Path(values['model']).name}"
    console.print(make_table(title, headings, rows, right=headings))
    console.print(f"{folder} has heads.json, heads.png")

"""Score the attention heads of a model, print the scores by layer, and draw them as a heat map. `hf-mwp prune` removes
the heads with the lowest scores first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mwp.utils.checks import check_at_least_one, check_options
from hf_mwp.utils.files import find_names
from hf_mwp.utils.option import option

from .tasks.data_options import MeasuredTaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, make_table


if TYPE_CHECKING:
    from hf_mwp.compress.pruning import HeadImportance


# Classes of [`pruning`] that score attention heads, by their names on the command line.
IMPORTANCES = {
    "combined": "CombinedImportance",
    "norm": "WeightNorm",
    "entropy": "AttentionEntropy",
    "peak": "AttentionPeak",
    "gradient": "GateGradient",
    "random": "RandomImportance",
}
IMPORTANCE_HELP = (
    "Score of heads: combined (norm and entropy, weighted by alpha), norm of their weights, entropy or peak of their "
    "attention weights, gradient of the loss with respect to a multiplier of their output, or random."
)


@dataclass
class HeadsArguments:
    """Options of `hf-mwp heads`, besides the data options."""

    model: str | None = option(None, "Model: folder or Hub id.", required=True, common=True)
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=tuple(IMPORTANCES))
    alpha: float = option(0.5, "Weight of the norm in importance combined; the entropy has weight 1 - alpha.")
    split: str = option("train", "Dataset split on whose texts heads are scored.")
    num_batches: int = option(8, "Number of batches.")
    batch_size: int = option(32, "Number of texts in a batch.")
    output_dir: str | None = option(None, "Folder of heads.json and heads.png; runs/heads_MODEL if not given.")
    seed: int = option(0, "Seed of importance random.")

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "num_batches", "batch_size")


OPTIONS = (HeadsArguments, MeasuredTaskArguments)
EXAMPLES = ("hf-mwp heads --model runs/teacher --dataset asdiv_a --importance gradient --output_dir runs/heads",)


def run(console: CommandConsole, args: HeadsArguments, data_args: MeasuredTaskArguments) -> None:
    folder, scores = score_heads(args, data_args, console)
    exponent = _shared_exponent(scores)
    num_heads = max(map(len, scores))
    headings = ["layer", *map(str, range(num_heads))]
    rows = []
    for layer, layer_scores in enumerate(scores):
        cells = ["-" if score is None else f"{score * 10.0**-exponent:.2f}" for score in layer_scores]
        rows.append((str(layer), *cells))
    unit = f", in units of 1e{exponent}" if exponent else ""
    title = f"{args.importance} of {Path(args.model).name} by layer (row) and head (column){unit}"
    console.print(make_table(title, headings, rows, right=headings))
    files = find_names(folder, ("heads.json", "heads.png"))
    console.print(f"{folder} contains {', '.join(files)}")


def _shared_exponent(scores: Sequence[Sequence[float | None]]) -> int:
    """Return the power of ten that scores share in the table, so that the columns of twelve heads fit into 100
    characters."""
    largest = 0
    for layer_scores in scores:
        for score in layer_scores:
            if score is not None:
                largest = max(largest, abs(score))
    return math.floor(math.log10(largest)) if 0 < largest < 0.1 else 0


def make_importance(name: str, alpha: float = 0.5, seed: int = 0) -> HeadImportance:
    """Create the score of attention heads with this name; `alpha` is used by "combined", `seed` by "random"."""
    from hf_mwp.compress import pruning

    importance_class = getattr(pruning, IMPORTANCES[name])
    if name == "combined":
        return importance_class(alpha)
    if name == "random":
        return importance_class(seed)
    return importance_class()


def score_heads(
    args: HeadsArguments, data_args: MeasuredTaskArguments, reporter: Reporter = SILENT
) -> tuple[Path, list[list[float | None]]]:
    """Score the attention heads of a model, and write the scores to `heads.json` and `heads.png`: `hf-mwp heads`.
    Returns the folder, and the scores by layer and head, with `None` for pruned heads."""
    from hf_mwp.compress.pruning import draw_importance, rows_of
    from hf_mwp.utils.files import write_json
    from hf_mwp.utils.run_folder import check_output_folder

    from .tasks.make_task import make_task
    from .tasks.plots import can_draw

    importance = make_importance(args.importance, args.alpha, args.seed)
    folder = Path(args.output_dir or Path("runs") / f"heads_{Path(args.model).resolve().name}")
    check_output_folder(folder)
    task = make_task(data_args)
    rows = task.learnable(task.rows(args.split))
    num_rows = min(len(rows), args.num_batches * args.batch_size)
    rows = list(rows.select(range(num_rows)))
    model, processor = task.load_model(args.model, args.split)
    batches = task.labelled_batches(model, processor, rows, args.batch_size)
    scores = importance.scores(model, batches)
    layer_scores = rows_of(scores)
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "model": args.model,
        "importance": args.importance,
        "dataset": task.name,
        "texts": sum(len(batch["input_ids"]) for batch in batches),
        "scores": layer_scores,
    }
    write_json(folder / "heads.json", record)
    if can_draw(reporter):
        title = f"{args.importance} of the heads of {Path(args.model).name}"
        draw_importance(scores, folder / "heads.png", title)
    return folder, layer_scores

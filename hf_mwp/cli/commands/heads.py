"""`hf-mwp heads`: how much each attention head of a model matters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...building.encoder import load_encoder
from ...building.model_sources import load_config, loading, solver_class
from ...options import option
from ...options.checks import check_at_least_one
from ...store.files import write_whole
from ...store.runs.run_folder import check_output_folder
from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.make_task import make_task
from ...tasks.pruning_arguments import IMPORTANCE_HELP, IMPORTANCES, make_importance
from ...tasks.task import Task
from ..options import parse_command
from ..terminal.console import make_console, make_table


if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn


@dataclass
class HeadsArguments:
    """Options of `hf-mwp heads` beside those of the data."""

    model: str | None = option(
        None, "Folder or Hub id of a solver, or of any encoder with its tokenizer (must be given).", common=True
    )
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=IMPORTANCES)
    alpha: float = option(0.5, "Weight of the heads' norm against their entropy, of importance combined.")
    split: str = option("train", "Part of the data set on whose texts heads are scored.")
    num_batches: int = option(8, "Batches of them.")
    batch_size: int = option(32, "Texts in a batch.")
    output_dir: str | None = option(None, "Folder for heads.json and heads.png; runs/heads_MODEL if not given.")
    seed: int = option(0, "Seed of importance random.")

    def __post_init__(self):
        check_at_least_one(self, "num_batches", "batch_size")
        if self.model is None:
            raise ValueError("a `model` must be given: a folder or Hub id.")


def run(argv: list[str]) -> int:
    """Scores, prints, draws; see `hf-mwp heads --help`."""
    (args, data_args), _ = parse_command(
        "heads",
        "Score the attention heads of a model, print the scores by layer, and draw them as a heat map: what `hf-mwp "
        "prune` would cut first.",
        argv,
        [HeadsArguments, MeasuredTaskArguments],
    )
    from ...pruning import draw_importance, rows_of

    importance = make_importance(args.importance, args.alpha, args.seed)
    folder = Path(args.output_dir or Path("runs") / f"heads_{Path(args.model).resolve().name}")
    check_output_folder(folder)
    console, task = make_console(), make_task(data_args)
    rows = task.split_to_read(args.split)
    rows = rows.select(range(min(len(rows), args.num_batches * args.batch_size)))
    groups = [list(rows)[at : at + args.batch_size] for at in range(0, len(rows), args.batch_size)]
    model, batches = load_with_batches(task, args.model, args.split, groups)
    scores = importance.scores(model, batches)
    folder.mkdir(parents=True, exist_ok=True)
    title = f"{args.importance} of the heads of {Path(args.model).name}"
    known = {"model": args.model, "importance": args.importance, "dataset": task.name, "texts": len(rows)}
    layers = rows_of(scores)
    write_whole(folder / "heads.json", json.dumps(known | {"scores": layers}, indent=2) + "\n")
    draw_importance(scores, folder / "heads.png", title=title)
    headings = ["layer", *(f"head {head}" for head in range(scores.shape[1]))]
    cells = (
        (str(layer), *("-" if score is None else f"{score:.3f}" for score in row)) for layer, row in enumerate(layers)
    )
    console.print(make_table(title, headings, cells, right=headings))
    console.print(f"{folder} has heads.json, heads.png")
    return 0


def load_with_batches(task: Task, name: str, split: str, groups: list) -> tuple[nn.Module, list[Mapping[str, Any]]]:
    """
    Load a solver, and batches as its collator makes them of the groups of rows of a split; of another model its
    encoder, and texts as it reads them.
    """
    from ...data.batches.processor_file import load_tokenizer
    from ...trainers.solver.solver_dataset import prepare_training_rows

    if solver_class(load_config(name).model_type) is not None:
        model, processor = task.load_model(name)
        task.check_split(split, processor, name)
        collator = task.collator(model, processor)
        return model, [collator([*prepare_training_rows(group, processor)]) for group in groups]
    model = load_encoder(name, dropout=None)
    with loading(f"The tokenizer {name}"):
        tokenizer = load_tokenizer(name)
    read = {"padding": True, "truncation": True, "return_tensors": "pt"}
    return model, [tokenizer(task.texts(group), **read) for group in groups]

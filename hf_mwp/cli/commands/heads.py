"""`hf-mwp heads`: how much each attention head of a model matters."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...building.model_sources import solver_class
from ...option_checks import check_at_least_one
from ...option_roles import Role, option
from ...runs.run_folder import check_output_folder
from ...runs.stage_arguments import IMPORTANCE_HELP, IMPORTANCES
from ...store.files import write_whole
from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.task import Task
from ...usage_error import UsageError
from ..options.importance import make_importance
from ..options.parsing import parse
from ..options.tasks import make_task
from ..terminal.console import make_console, make_table


if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import nn


@dataclass
class HeadsArguments:
    """Options of `hf-mwp heads` beside those of the data."""

    model: str | None = option(
        None, "Folder or Hub id of a solver, or of any encoder with its tokenizer (must be given).", Role.COMMON
    )
    importance: str = option("combined", IMPORTANCE_HELP, Role.COMMON, IMPORTANCES)
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


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [HeadsArguments, MeasuredTaskArguments]


def run(argv: list[str]) -> int:
    """Scores, prints, draws; see `hf-mwp heads --help`."""
    (args, data_args), _ = parse(
        "heads",
        "Score the attention heads of a model, print the scores by layer, and draw them as a heat map: what `hf-mwp "
        "prune` would cut first.",
        argument_types(),
        argv,
    )
    from ...pruning import draw_importance, rows_of

    importance = make_importance(args.importance, args.alpha, args.seed)
    folder = Path(args.output_dir or Path("runs") / f"heads_{Path(args.model).resolve().name}")
    check_output_folder(folder)
    console, task = make_console(), make_task(data_args)
    rows = task.part_to_read(args.split)
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
    A solver and batches as its collator makes them of rows of a part, in groups; of another model its encoder, and
    texts as it reads them.
    """
    from transformers import AutoConfig, AutoModel, AutoTokenizer

    from ...trainers.solver.solver_dataset import prepare_training_rows

    try:
        if solver_class(AutoConfig.from_pretrained(name).model_type) is not None:
            model, processor = task.load_model(name)
            task.check_part(split, processor, name)
            collator = task.collator(model, processor)
            return model, [collator([*prepare_training_rows(group, processor)]) for group in groups]
        model, tokenizer = AutoModel.from_pretrained(name), AutoTokenizer.from_pretrained(name)
    except UsageError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(f"{name} cannot be loaded with its tokenizer: {error}") from error
    if len(tokenizer) <= len(tokenizer.all_special_tokens):
        # What Transformers makes where there are no files of one.
        raise UsageError(f"{name} has no tokenizer: save the model's beside it.")
    read = {"padding": True, "truncation": True, "return_tensors": "pt"}
    return model, [tokenizer(task.texts(group), **read) for group in groups]

"""`hf-mwp evaluate`: how well a solver does on a data set, and what each of its failures is."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from ..files import write_json_lines
from .console import accuracy_table, make_console
from .data_arguments import DataArguments, check_at_least_one
from .errors import CommandError
from .evaluation import overlap_reports, predict, reason_table
from .model_folder import load_solver
from .parsing import parse
from .problem_data import load_problem_data
from .reranking import RERANK_HELP, RERANKER_HELP, predict_reranked, side_by_side, wanted_reranker
from .run_folder import RunFolder


@dataclass
class EvaluateArguments:
    """Options of `hf-mwp evaluate` beside those of the data; the fields' help says what each is."""

    model: str = field(default="hf_mwp_quickstart/student", metadata={"help": "Folder or Hub id of the solver."})
    split: str = field(
        default="test", metadata={"help": "Part of the data set to solve.", "choices": ["test", "validation", "train"]}
    )
    num_beams: int | None = field(
        default=None,
        metadata={"help": "Beams of the search, 1 if not given, or those of the re-ranker; the papers report 5."},
    )
    rerank: bool = field(default=False, metadata={"help": RERANK_HELP})
    reranker: str | None = field(default=None, metadata={"help": RERANKER_HELP})
    max_decode_length: int | None = field(
        default=None, metadata={"help": "Most symbols of an equation; the decoder's own limit if not given."}
    )
    rule: str = field(
        default="annotated",
        metadata={
            "help": "What a right answer is: the annotated one (relative tolerance), or, as the peers have it, the "
            "value of the target equation (absolute tolerance).",
            "choices": ["annotated", "peers"],
        },
    )
    batch_size: int = field(default=64, metadata={"help": "Problems solved at once."})
    predictions: str | None = field(
        default=None,
        metadata={"help": "JSONL file for the predictions; predictions_<dataset>_<split>.jsonl if not given."},
    )
    output_dir: str | None = field(
        default=None, metadata={"help": "Folder for the predictions and for the figures (metrics.json)."}
    )
    json: bool = field(default=False, metadata={"help": "Print the figures as one JSON object instead of tables."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "batch_size", "max_decode_length")


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [EvaluateArguments, DataArguments]


def run(argv: list[str]) -> int:
    """Evaluates, prints tables, writes predictions; see `hf-mwp evaluate --help`."""
    (args, data_args), values = parse(
        "evaluate",
        "Measure a solver on a data set: answer and equation accuracy, overall, per level of complexity, and with and "
        "without problems whose masked text is in the training part. Every prediction goes to a JSONL file with the "
        "reason of its failure.",
        argument_types(),
        argv,
    )
    check_device(args.device)
    console = make_console(stderr=args.json)
    if args.output_dir is None:
        evaluate(args, data_args, None, console)
        return 0
    folder = RunFolder(args.output_dir, "evaluate", values)
    try:
        evaluate(args, data_args, folder, console)
    finally:
        folder.close()
    return 0


def evaluate(args: EvaluateArguments, data_args: DataArguments, folder: RunFolder | None, console: Console) -> None:
    """Solves a part of a data set, prints tables, and writes predictions and, to the run's folder, figures."""
    model, processor = load_solver(args.model)
    reranker, num_beams = wanted_reranker(args.rerank, args.reranker, args.model, processor, args.num_beams)
    model.to(args.device or default_device())
    if args.split == "test":
        # All that may have been trained on counts when test problems are compared with training problems.
        data_args.validation_fraction = 0.0
    data = load_problem_data(data_args)
    console.print(data.summary())
    rows = data.part(args.split)
    if rows is None:
        raise CommandError(f"{data_args.dataset} has no {args.split!r} part; it has {', '.join(data.parts)}.")
    options = {"max_decode_length": args.max_decode_length, "rule": args.rule, "console": console}
    seen = data.seen_in_training if args.split != "train" else None
    without, added = {}, itertools.repeat({})
    if reranker is None:
        predictions = predict(model, processor, list(rows), args.batch_size, num_beams, **options)
    else:
        first, predictions, added = predict_reranked(
            model, processor, list(rows), reranker, args.batch_size, num_beams, **options
        )
        without = overlap_reports(first, seen)
    reports = overlap_reports(predictions, seen)
    path = Path(args.predictions or f"predictions_{Path(data_args.dataset).stem}_{args.split}.jsonl")
    figures = {"scheme": data.scheme, "num_beams": num_beams, "rule": args.rule, "reports": reports}
    if reranker is not None:
        figures |= {"reranked": True, "reports_without_reranking": without}
    if folder is not None and args.predictions is None:
        path = folder.path / path
    records = (
        each.to_dict() | {"masked_text_in_train": seen(each) if seen else None} | more
        for each, more in zip(predictions, added, strict=False)
    )
    write_json_lines(path, records)
    if folder is not None:
        folder.write_json("data.json", data.record())
        folder.finish({"model": args.model, "dataset": data.name, args.split: figures})
    if args.json:
        print(json.dumps({"model": args.model, "split": args.split} | figures, ensure_ascii=False))
    else:
        beams = "greedy" if num_beams == 1 else f"{num_beams} beams"
        title = f"{args.model} on {data_args.dataset}, {args.split} part ({data.scheme}), {beams}, rule {args.rule!r}"
        console.print(accuracy_table(title, side_by_side(without, reports) if without else reports))
        console.print(reason_table(predictions))
    console.print(f"Predictions: {path}")


def default_device() -> str:
    """The first GPU, if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(name: str | None) -> None:
    """Raises `CommandError` if a device is named that this machine, or its PyTorch, does not have."""
    import torch

    found = ["cpu"]
    if torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator().type
        found += [f"{kind}:{number}" for number in range(torch.accelerator.device_count())]
    kinds = {each.partition(":")[0] for each in found}
    # `cpu:0` is the CPU.
    if name and name not in found and name.removesuffix(":0") not in kinds:
        raise CommandError(f"--device: this machine has no {name!r}; it has {', '.join(found)}.")

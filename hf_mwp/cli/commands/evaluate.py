"""`hf-mwp evaluate`: how well a solver does on a data set, and what each of its failures is."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from ...building.solver import load_solver
from ...option_checks import check_at_least_one
from ...runs.run_folder import RunFolder
from ...solving.reranking import RERANK_HELP, RERANKER_HELP, predict_reranked, wanted_reranker
from ...solving.set_solving import group_reports, predict
from ...store.files import write_json_lines
from ...tasks.data_options import DataArguments
from ...tasks.problem_data import load_problem_data
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import accuracy_table, make_console, reason_table, side_by_side
from ..terminal.reliability import calibration_table, draw_reliability, measure_calibration


LANGUAGES = {"zh": "Chinese", "en": "English"}


@dataclass
class EvaluateArguments:
    """Options of `hf-mwp evaluate` beside those of the data; the fields' help says what each is."""

    model: str | None = field(default=None, metadata={"help": "Folder or Hub id of the solver (must be given)."})
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
            "help": "What a right answer is: the annotated one (whole numbers equal, others up to a relative 1e-4), "
            "or, as the peers have it, the value of the target equation (absolute tolerance).",
            "choices": ["annotated", "peers"],
        },
    )
    batch_size: int = field(default=64, metadata={"help": "Problems solved at once."})
    predictions: str | None = field(
        default=None,
        metadata={
            "help": "JSONL file for the predictions; predictions_<dataset>_<split>.jsonl in output_dir if not given, "
            "or else runs/predictions_<model>_<dataset>[_fold<fold>]_<split>.jsonl."
        },
    )
    output_dir: str | None = field(
        default=None,
        metadata={"help": "Folder for the predictions, the figures (metrics.json) and a picture (reliability.png)."},
    )
    half_precision: bool = field(
        default=False, metadata={"help": "Round the weights first, as `hf-mwp card` does for the published folder."}
    )
    json: bool = field(default=False, metadata={"help": "Print the figures as one JSON object instead of tables."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "batch_size", "max_decode_length")
        if self.model is None:
            raise ValueError(
                "a `model` and a `dataset` must be given: what solves, and what it is measured on, for example "
                "--model hf_mwp_quickstart/student --dataset asdiv_a."
            )
        if self.predictions is not None and Path(self.predictions).is_dir():
            raise ValueError(f"`predictions` takes a file, and {self.predictions} is a folder: name a file in it.")


@dataclass
class MeasuredDataArguments(DataArguments):
    """[`DataArguments`] with a data set that must be given: a solver knows one language and one kind of problem."""

    dataset: str | None = field(
        default=None, metadata={"help": "Name of a data set, or a JSONL or CSV file (must be given)."}
    )

    def __post_init__(self):
        super().__post_init__()
        if self.dataset is None:
            raise ValueError(
                "a `dataset` must be given: a JSONL or CSV file, or the name of a data set in the language of the "
                "model, such as math23k (Chinese) or asdiv_a (English)."
            )


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [EvaluateArguments, MeasuredDataArguments]


def run(argv: list[str]) -> int:
    """Evaluates, prints tables, writes predictions; see `hf-mwp evaluate --help`."""
    (args, data_args), values = parse(
        "evaluate",
        "Measure a solver on a data set: answer and equation accuracy, overall, per level of complexity, and with and "
        "without problems whose text, or whose text up to its numbers, the model was trained on. Every prediction "
        "goes to a JSONL file with the reason of its failure.",
        argument_types(),
        argv,
    )
    check_device(args.device)
    console = make_console(stderr=args.json)
    if args.output_dir is None:
        evaluate(args, data_args, None, console)
        return 0
    with RunFolder(args.output_dir, "evaluate", values, begin=False) as folder:
        folder.check_record()
        folder.begin()
        evaluate(args, data_args, folder, console)
    return 0


def evaluate(args: EvaluateArguments, data_args: DataArguments, folder: RunFolder | None, console: Console) -> None:
    """Solves a part of a data set, prints tables, and writes predictions and, to the run's folder, figures."""
    model, processor = load_solver(args.model)
    reranker, num_beams = wanted_reranker(args.rerank, args.reranker, args.model, processor, args.num_beams)
    if args.half_precision:
        dtype = model.dtype
        model.half().to(dtype)
    model.to(args.device or default_device())
    if args.split == "test":
        # All that may have been trained on counts when test problems are compared with training problems.
        data_args.validation_fraction = 0.0
    data = load_problem_data(data_args)
    data.tell(console)
    rows = data.part(args.split)
    if rows is None:
        raise UsageError(f"{data_args.dataset} has no {args.split!r} part; it has {', '.join(data.parts)}.")
    if processor.language not in rows["language"]:
        ours, theirs = LANGUAGES[processor.language], LANGUAGES[rows[0]["language"]]
        raise UsageError(
            f"{args.model} solves problems in {ours}, and those of {data_args.dataset} are in {theirs}: take a data "
            "set in the model's language."
        )
    options = {"max_decode_length": args.max_decode_length, "rule": args.rule, "console": console}
    overlap = data.overlap(model, args.split)
    without, added = {}, itertools.repeat({})
    if reranker is None:
        predictions = predict(model, processor, list(rows), args.batch_size, num_beams, **options)
    else:
        first, predictions, added = predict_reranked(
            model, processor, list(rows), reranker, args.batch_size, num_beams, **options
        )
        without, _ = group_reports(first, overlap)
    reports, texts = group_reports(predictions, overlap)
    path = predictions_path(args, data_args, folder)
    calibration = measure_calibration(predictions, reranker and [each["plausibility"] for each in added])
    figures = {
        "scheme": data.scheme,
        "num_beams": num_beams,
        "rule": args.rule,
        "reports": reports,
        "training_texts": texts,
        "calibration": calibration,
    }
    if reranker is not None:
        figures |= {"reranked": True, "reports_without_reranking": without}
    records = (
        each.to_dict() | overlap.flags(each.problem.text) | more
        for each, more in zip(predictions, added, strict=False)
    )
    write_json_lines(path, records)
    if folder is not None:
        folder.write_json("data.json", data.record())
        if calibration is not None:
            name = f"{data.name}, {args.split} part"
            draw_reliability(calibration, folder.path / "reliability.png", title=name)
        folder.finish({"model": args.model, "dataset": data.name, args.split: figures})
    if args.json:
        print(json.dumps({"model": args.model, "split": args.split} | figures, ensure_ascii=False))
    else:
        beams = "greedy" if num_beams == 1 else f"{num_beams} beams"
        title = f"{args.model} on {data_args.dataset}, {args.split} part ({data.scheme}), {beams}, rule {args.rule!r}"
        console.print(accuracy_table(title, side_by_side(without, reports) if without else reports, texts["remark"]))
        console.print(reason_table(predictions))
        if calibration is not None:
            console.print(calibration_table(calibration))
    console.print(f"Predictions: {path}")


def predictions_path(args: EvaluateArguments, data_args: DataArguments, folder: RunFolder | None) -> Path:
    """Where the predictions go: where they are wanted, into the run's folder, or to `runs`."""
    if args.predictions is not None:
        return Path(args.predictions)
    dataset = Path(data_args.dataset).stem
    if folder is not None:
        return folder.path / f"predictions_{dataset}_{args.split}.jsonl"
    fold = "" if data_args.fold is None else f"_fold{data_args.fold}"
    return Path("runs") / f"predictions_{Path(args.model).resolve().name}_{dataset}{fold}_{args.split}.jsonl"


def default_device() -> str:
    """The first GPU, if there is one."""
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"


def check_device(name: str | None) -> None:
    """Raises `UsageError` if a device is named that this machine, or its PyTorch, does not have."""
    import torch

    found = ["cpu"]
    if torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator().type
        found += [f"{kind}:{number}" for number in range(torch.accelerator.device_count())]
    kinds = {each.partition(":")[0] for each in found}
    # `cpu:0` is the CPU.
    if name and name not in found and name.removesuffix(":0") not in kinds:
        raise UsageError(f"--device: this machine has no {name!r}; it has {', '.join(found)}.")

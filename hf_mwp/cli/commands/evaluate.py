"""`hf-mwp evaluate`: how well a solver does on a data set, and what each of its failures is."""

from __future__ import annotations

import json
import os
from contextlib import nullcontext, suppress
from pathlib import Path

from ...data.data_error import DataError
from ...solving.search_options import EvaluateArguments, find_device
from ...store.files import write_json_lines
from ...store.finished_folder import digest_of
from ...store.runs.run_folder import RunFolder, check_output_folder
from ...tasks.data_options import MeasuredTaskArguments
from ...tasks.evaluation import check_predictions_file, evaluate_split
from ...tasks.make_task import make_task
from ...tasks.pictures import draw_reliability
from ...usage_error import UsageError
from ..options import parse_command
from ..terminal.console import calibration_table, make_console, print_evaluation, side_by_side, solving_bar


def run(argv: list[str]) -> int:
    """Evaluates, prints tables, writes predictions; see `hf-mwp evaluate --help`."""
    (args, data_args), values = parse_command(
        "evaluate",
        "Measure a solver on a data set: answer and equation accuracy, overall, per level of complexity, and with and "
        "without problems whose text, or whose text up to its numbers, the model was trained on. Every prediction "
        "goes to a JSONL file with the reason of its failure. With --task a classifier of texts, by its figures.",
        argv,
    )
    device = find_device(args.device)
    console = make_console(stderr=args.json)
    place, path = args.output_dir, predictions_path(args, data_args)
    check_predictions_file(path, dataset_path(data_args), args.overwrite)
    if args.predictions is not None:
        make_place(path.parent)
    with nullcontext() if place is None else RunFolder(place, "evaluate", values, begin=False) as folder:
        if folder is not None:
            folder.check_record()
            folder.begin()
        if args.split == "test":
            # All that may have been trained on counts when test problems are compared with training problems.
            data_args.validation_fraction = 0.0
        elif args.split == "train":
            data_args.max_train_samples = data_args.max_eval_samples or data_args.max_train_samples
        task = make_task(data_args)
        model, processor = task.load_model(args.model)
        if args.random_sparsity:
            from ...pruning.sparse_teacher import zero_random_weights

            model = zero_random_weights(model, args.random_sparsity, args.seed)
        options = task.search_options(args, processor)
        if args.half_precision:
            dtype = model.dtype
            model.half().to(dtype)
        task.tell(console)
        task.check_split(args.split, processor, args.model)
        options["progress"] = solving_bar(console)
        evaluation = evaluate_split(task, model.to(device), processor, args.split, **options)
        calibration, reports = task.calibration(evaluation.predictions), evaluation.reports
        figures = evaluation.figures | {"calibration": calibration}
        if (confidence := task.confidence(evaluation.predictions)) is not None:
            figures["confidence"] = confidence
        if options.get("reranker") is not None:
            without = evaluation.reports_of([each.without_reranking() for each in evaluation.predictions])
            figures |= {"reranked": True, "reports_without_reranking": without}
            reports = side_by_side(without, reports)
        write_json_lines(path, evaluation.records())
        if folder is not None:
            folder.write_json("data.json", task.record())
            if calibration is not None:
                draw_reliability(calibration, folder.path / "reliability.png", f"{task.name}, {args.split} part")
            folder.finish({"model": args.model, "dataset": task.name, args.split: evaluation.record | figures})
    if args.json:
        print(json.dumps({"model": args.model, "split": args.split} | figures, ensure_ascii=False))
    else:
        print_evaluation(console, evaluation, f"{args.model} on {data_args.task or data_args.dataset}", reports)
        if calibration is not None:
            console.print(calibration_table(calibration))
    console.print(f"Predictions: {path}")
    return 0


def make_place(folder: Path) -> None:
    """Makes a folder before work starts whose result it is to hold."""
    check_output_folder(folder, for_model=True)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"`predictions`: {folder} cannot be made ({error.strerror}), name another place.") from error


def predictions_path(args: EvaluateArguments, data_args: MeasuredTaskArguments) -> Path:
    """Where the predictions go: where they are wanted, into the run's folder, or to `runs`."""
    if args.predictions is not None:
        return Path(args.predictions)
    source = Path(data_args.dataset or data_args.task)
    dataset = source.stem
    fold = "" if data_args.fold is None else f"_fold{data_args.fold}"
    if args.output_dir is not None:
        return Path(args.output_dir) / f"predictions_{dataset}_{args.split}.jsonl"
    if source.is_file():
        # Files of several data sets are often called alike.
        dataset = f"{source.resolve().parent.name}_{dataset}"
    names = (args.model, source, data_args.data_dir, data_args.split_scheme)
    digest = digest_of([str(Path(name).resolve()) if os.path.exists(name) else str(name) for name in names if name])
    model = Path(args.model).resolve().name
    return Path("runs") / f"predictions_{model}_{dataset}{fold}_{args.split}-{digest[:8]}.jsonl"


def dataset_path(data_args: MeasuredTaskArguments) -> Path | None:
    """The file or folder of the data set; `None` if there is none, which is reported when it is read."""
    from ...data.datasets.sources import locate_dataset

    if data_args.dataset is None:
        return None
    with suppress(DataError):
        return locate_dataset(data_args.dataset, data_args.data_dir)

"""
Evaluate a solver on a dataset: answer and equation accuracy, overall, per level of complexity, and with and without
problems whose text, or whose text apart from its numbers, the model was trained on. Every prediction is written to a
JSONL file with the reason for its failure. With --task, evaluate a different model, such as a text classifier, by the
metrics of that task. A killed run of a solver resumes, and `accelerate launch` divides it among processes.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.checks import check_at_least_one, check_share, check_used
from hf_mwp.utils.files import remove_folder, write_json_lines
from hf_mwp.utils.main_process import is_main_process, wait_for_all
from hf_mwp.utils.option import option, option_values, options_in
from hf_mwp.utils.run_folder import RunFolder, last_options
from hf_mwp.utils.usage_error import UsageError

from .options.search_options import RankedSearchOptions, find_device
from .tasks.data_options import MeasuredTaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, make_table, print_evaluation


if TYPE_CHECKING:
    from .tasks.evaluation import Evaluation
    from .tasks.task import Task


# Options that must be the same if the folder already contains an evaluation.
FIXED_OPTIONS = ("model", "task", "dataset", "data_dir", "split_scheme", "fold", "split", "reverse_held_out")


@dataclass
class EvaluateArguments(RankedSearchOptions):
    """Options of `hf-mwp evaluate`, except the data options."""

    split: str = option("test", "Dataset split to solve.", choices=["test", "validation", "train"])
    max_decode_length: int | None = option(None, "Maximum number of symbols of an equation; default: the decoder's.")
    answer_match: str = option(
        "annotated",
        "Target value: the annotated answer (integers must be equal, other values within a relative 1e-4), "
        "or the value of the target equation (absolute tolerance).",
        choices=["annotated", "equation_value"],
    )
    output_dir: str | None = option(
        None,
        "Folder (predictions.jsonl, metrics.json); default: runs/evaluate_<model>_<dataset>[_fold<fold>]_<split>.",
    )
    random_sparsity: float = option(
        0.0, "Share of the weights in the encoder layers to set to 0 at random first (pilot study of STARK)."
    )
    seed: int = option(0, "Seed for the choice of the weights set to 0.")
    half_precision: bool = option(False, "Round the weights to half precision first, as `hf-mwp card` does.")
    json: bool = option(False, "Print the metrics as a JSON object instead of tables.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_decode_length")
        check_share(self, "random_sparsity")


OPTIONS = (EvaluateArguments, MeasuredTaskArguments)
EXAMPLES = (
    "hf-mwp evaluate --model runs/student --dataset asdiv_a --fold 0 --output_dir runs/evaluate",
    "hf-mwp evaluate --model runs/student --dataset test.csv --columns text=question,answer=result --rerank",
)


def run(console: CommandConsole, args: EvaluateArguments, data_args: MeasuredTaskArguments) -> None:
    evaluation, metrics, path = evaluate(args, data_args, console)
    if not is_main_process():
        return
    if args.json:
        print(json.dumps({"model": args.model, "split": args.split} | metrics, ensure_ascii=False))
    else:
        name = f"{args.model} on {data_args.task or data_args.dataset}"
        print_evaluation(console, evaluation, name, _compared_reports(metrics))
        if metrics["calibration"] is not None:
            console.print(calibration_table(metrics["calibration"]))
    console.print(f"Predictions: {path}")


def _compared_reports(metrics: Mapping[str, Any]) -> Mapping[str, Mapping[str, float]]:
    """Return the reports and, if answers were re-ranked, those without re-ranking beside them."""
    reports = metrics["reports"]
    reports_without = metrics.get("reports_without_reranking")
    if not reports_without:
        return reports
    compared = {}
    for name, report in reports.items():
        compared[f"{name}, without re-ranking"] = reports_without[name]
        compared[f"{name}, with re-ranking"] = report
    return compared


def calibration_table(report: Mapping[str, Any]) -> Table:
    """Return a table of the values of [`metrics.calibration_report`]."""
    auroc = "-" if report["auroc"] is None else f"{report['auroc']:.3f}"
    error = f"mean distance of probability and accuracy, {report['num_bins']} bins"
    surest = f"correct answers among the {report['num_surer_half']} surest of {report['num_problems']}"
    rows = (
        ("expected calibration error", f"{report['expected_calibration_error']:.3f}", error),
        ("AUROC", auroc, "how often a correct answer is surer than a wrong one"),
        ("surer half %", percent(report["surer_half_accuracy"]), surest),
    )
    return make_table("Calibration of the probabilities", ("figure", "value", "meaning"), rows, right=["value"])


def evaluate(
    args: EvaluateArguments, data_args: MeasuredTaskArguments, reporter: Reporter = SILENT
) -> tuple[Evaluation, dict[str, Any], Path]:
    """
    Evaluate a model on a split of a task, and write each prediction with the reason for its failure to a file: `hf-mwp
    evaluate`. Processes under `accelerate launch` share the rows. A killed run on math word problems resumes. Raises
    `UsageError` if model and data do not match, or the folder belongs to another model. Returns the evaluation; its
    [`Evaluation.metrics`] with [`~Task.details`] and, if re-ranked, `reports_without_reranking`; and the path of the
    predictions.
    """
    from hf_mwp.compress.pruning import zero_random_weights

    from .tasks.evaluation import evaluate_split, predict_options
    from .tasks.loaded_data import print_data_report
    from .tasks.make_task import make_task

    device = find_device(args.device)
    with RunFolder(_output_folder(args, data_args), "evaluate", option_values(args, data_args)) as folder:
        folder.check_record()
        _check_same_evaluation(folder)
        data_args = copy.copy(data_args)
        if args.split == "test":
            # Test problems are compared with all problems that a model may have been trained on.
            data_args.validation_fraction = 0.0
        elif args.split == "train":
            data_args.max_train_samples = data_args.max_eval_samples or data_args.max_train_samples
        task = make_task(data_args)
        _check_search(task, args)
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model, args.split)
        if args.random_sparsity:
            model = zero_random_weights(model, args.random_sparsity, args.seed)
        path = folder.path / "predictions.jsonl"
        unfinished = folder.path / "unfinished"
        options = predict_options(task, args)
        options |= {"batch_size": args.batch_size, "progress": reporter.progress()}
        if task.solves:
            options |= args.search_settings(processor)._asdict()
            options["unfinished"] = unfinished
        if args.half_precision:
            dtype = model.dtype
            model.half().to(dtype)
        folder.begin()
        evaluation = evaluate_split(task, model.to(device), processor, args.split, share=True, **options)
        metrics = evaluation.metrics | {"calibration": None} | task.details(evaluation.predictions)
        if options.get("reranker") is not None:
            without_reranking = [prediction.without_reranking() for prediction in evaluation.predictions]
            metrics["reranked"] = True
            metrics["reports_without_reranking"] = evaluation.reports_of(without_reranking)
        # Wait until all processes have read each other's predictions.
        wait_for_all()
        if is_main_process():
            write_json_lines(path, evaluation.records())
            if unfinished.exists():
                remove_folder(unfinished)
            folder.write_json("data.json", task.data_record())
            folder.finish({"model": args.model, "dataset": task.name, args.split: evaluation.record | metrics})
    return evaluation, metrics, path


def _output_folder(args: EvaluateArguments, data_args: MeasuredTaskArguments) -> Path:
    if args.output_dir is not None:
        return Path(args.output_dir)
    words = ["evaluate", Path(args.model).resolve().name, Path(data_args.dataset or data_args.task).name]
    if data_args.fold is not None:
        words.append(f"fold{data_args.fold}")
    words.append(args.split)
    return Path("runs") / "_".join(words)


def _check_same_evaluation(folder: RunFolder) -> None:
    """Raise `UsageError` if the folder contains the evaluation of another model, or on other data."""
    last_values = last_options(folder.path) or folder.values
    for name in FIXED_OPTIONS:
        last_value = str(last_values.get(name))
        value = str(folder.values.get(name))
        if Path(last_value).resolve() != Path(value).resolve():
            fault = f"contains the evaluation of {last_value} ({name})"
            raise UsageError(f"{folder.path} {fault}. Choose another folder.")


def _check_search(task: Task, args: EvaluateArguments) -> None:
    """Raise `UsageError` if an option of the search is set that the task does not use."""
    unused: set[str] = set()
    if not task.solves:
        unused = {"num_beams", "score_margin", "max_decode_length", "answer_match", "rerank", "reranker"}
    if "num_beams" in task.recorded:
        unused -= {*task.recorded, "max_decode_length"}
    check_used(args, options_in(EvaluateArguments).keys() - unused, "does not apply to this `task`. Remove it")

"""
Evaluate a solver on a dataset: answer and equation accuracy, overall, per level of complexity, and with and without
problems whose text, or whose text apart from its numbers, the model was trained on. Every prediction is written to a
JSONL file with the reason for its failure. With --task, evaluate a different model, such as a text classifier, by the
metrics of that task. A killed run of a solver resumes, and `accelerate launch` divides it among processes.
"""

import json
from collections.abc import Mapping
from typing import Any

from rich.table import Table

from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.main_process import is_main_process

from . import evaluation as evaluations
from .options.search_options import EvaluateArguments
from .tasks.data_options import MeasuredTaskArguments
from .terminal.console import CommandConsole, make_table, print_evaluation


def run(console: CommandConsole, args: EvaluateArguments, data_args: MeasuredTaskArguments) -> None:
    evaluation, figures, path = evaluations.evaluate(args, data_args, console)
    if not is_main_process():
        return
    if args.json:
        print(json.dumps({"model": args.model, "split": args.split} | figures, ensure_ascii=False))
    else:
        reports = figures["reports"]
        if without := figures.get("reports_without_reranking"):
            pairs = (("without", without), ("with", reports))
            reports = {f"{name}, {how} re-ranking": each[name] for name in reports for how, each in pairs}
        name = f"{args.model} on {data_args.task or data_args.dataset}"
        print_evaluation(console, evaluation, name, reports)
        if figures["calibration"] is not None:
            console.print(calibration_table(figures["calibration"]))
    console.print(f"Predictions: {path}")


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

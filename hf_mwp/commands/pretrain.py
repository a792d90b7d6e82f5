"""Pretrain a student on texts of math word problems with masked language modelling, which masks mathematical words
more often, and with part-of-speech tagging."""

from hf_mwp.solver.metrics.accuracy import percent

from . import pretraining
from .terminal.console import CommandConsole, make_table, print_result


LABELS = {
    "mlm_loss": "masked words, loss",
    "mlm_loss_keywords": "... of keywords",
    "mlm_loss_numbers": "... of numbers and quantities",
    "mlm_accuracy": "masked words, right %",
    "pos_f1": "tagging, F1 %",
    "pos_precision": "tagging, precision %",
    "pos_recall": "tagging, recall %",
}


def run(console: CommandConsole, *options) -> None:
    result = pretraining.pretrain(*options, reporter=console)
    metrics = result.metrics.get("validation", {})
    rows = [
        (label, percent(metrics[name]) if label.endswith("%") else f"{metrics[name]:.3f}")
        for name, label in LABELS.items()
        if name in metrics
    ]
    if rows:
        console.print(make_table("held-out texts", ("", "metric"), rows, right=["metric"]))
    print_result(console, result, "student")

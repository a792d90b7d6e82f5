"""`hf-mwp pretrain`: masked language modelling and tagging on texts."""

from __future__ import annotations

from ....tasks.commands import parse_command
from ....tasks.training import pretrain
from ...terminal.console import make_console, make_table, percent
from .train import print_result


LABELS = {
    "mlm_loss": "masked words, loss",
    "mlm_loss_keywords": "... of keywords",
    "mlm_loss_numbers": "... of numbers and quantities",
    "mlm_accuracy": "masked words, right %",
    "pos_f1": "tagging, F1 %",
    "pos_precision": "tagging, precision %",
    "pos_recall": "tagging, recall %",
}


def run(argv: list[str]) -> int:
    """Pretrain a student; see `hf-mwp pretrain --help`. Also runs under `torchrun` and `accelerate launch`."""
    options, values = parse_command(
        "pretrain",
        "Pretrain a student on texts of math word problems: masked words, of which those that carry the mathematics "
        "are masked more often, and parts of speech.",
        argv,
    )
    console = make_console()
    result = pretrain(*options, values=values, reporter=console)
    metrics = result.metrics.get("validation", {})
    rows = [
        (label, percent(metrics[name]) if label.endswith("%") else f"{metrics[name]:.3f}")
        for name, label in LABELS.items()
        if name in metrics
    ]
    if rows:
        console.print(make_table("held-out texts", ("", "metric"), rows, right=["metric"]))
    print_result(console, result, "student")
    return 0

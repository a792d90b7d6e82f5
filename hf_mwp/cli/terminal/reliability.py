"""Whether a solver's probabilities can be trusted, as a table and a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from .console import make_table, percent


def calibration_table(report: Mapping[str, Any]) -> Table:
    """What [`metrics.calibration_report`] found, for the terminal."""
    error, auroc = report["expected_calibration_error"], report["auroc"]
    rows = (
        (
            "expected calibration error",
            f"{error:.3f}",
            f"mean distance of probability and accuracy, {report['num_bins']} bins",
        ),
        ("AUROC", "-" if auroc is None else f"{auroc:.3f}", "how often a right answer is surer than a wrong one"),
        (
            "surer half %",
            percent(report["surer_half_accuracy"]),
            f"answers right among the {report['num_surer_half']} surest of {report['num_problems']}",
        ),
    )
    headings = ("figure", "value", "meaning")
    return make_table("Whether its probability says what is right", headings, rows, right=["value"])


def draw_reliability(report: Mapping[str, Any], path: str | Path, title: str = "") -> None:
    """Draws to a PNG file how right the answers of each bin of probability are, and how many they are."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bins = report["bins"]
    places, widths = [each["from"] for each in bins], [each["to"] - each["from"] for each in bins]
    figure = Figure(figsize=(5, 6), layout="constrained")
    FigureCanvasAgg(figure)
    accuracies, counts = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    bars = [each["answer_accuracy"] for each in bins]
    accuracies.bar(places, bars, widths, align="edge", edgecolor="white", label="accuracy of the bin")
    accuracies.plot([each["probability"] for each in bins], bars, "o", color="black", label="at its mean probability")
    accuracies.plot([0, 1], [0, 1], "--", color="grey", label="as sure as right")
    error = f"expected calibration error {report['expected_calibration_error']:.3f}"
    accuracies.set(ylabel="answers right", xlim=(0, 1), ylim=(0, 1), title=error)
    accuracies.legend(loc="upper left")
    counts.bar(places, [each["num_problems"] for each in bins], widths, align="edge", edgecolor="white")
    counts.set(xlabel="probability of the equation", ylabel="problems")
    figure.suptitle(title)
    figure.savefig(path, dpi=120)

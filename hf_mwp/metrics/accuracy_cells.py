"""Functions that format accuracies for tables."""

from __future__ import annotations

from collections.abc import Mapping

from .accuracy import LEVELS


# GLUE metrics that are shares, to be shown in percent. For MNLI, a suffix follows the name.
SHARES = ("accuracy", "f1", "matthews", "spearman")


def percent(fraction: float | None) -> str:
    """Format a share in percent with one decimal, or `None` as a dash."""
    return "-" if fraction is None else f"{100 * fraction:.1f}"


def of_equations(report: Mapping[str, float], prefix: str = "") -> str:
    """Return the suffix of an equation accuracy: the number of equations if it differs from the number of problems."""
    count = report.get(f"{prefix}num_equations")
    differs = count not in (None, 0, report.get(f"{prefix}num_problems"))
    return f" of {int(count)}" if differs else ""


def report_cells(report: Mapping[str, float]) -> dict[str, str]:
    """
    Format a report as the cells of a table row, by heading. A result of [`metrics.accuracy_report`] gets a column for
    each level of complexity in the report. The report of any other task gets a column for each metric.
    """
    if "num_problems" not in report:
        counts = {name: value for name, value in report.items() if name.startswith("num_")}
        found = {name.removeprefix("num_"): f"{value:,}" for name, value in counts.items()}
        for name, value in report.items():
            if name not in counts:
                found |= {f"{name} %": percent(value)} if name.startswith(SHARES) else {name: f"{value:.3f}"}
        return found
    left_out = int(report.get("num_unjudged", 0))
    cells = {
        "problems": f"{int(report.get('num_problems', 0))}" + (f" ({left_out} left out)" if left_out else ""),
        "answer %": percent(report.get("answer_accuracy")),
        "equation %": percent(report.get("equation_accuracy")) + of_equations(report),
    }
    for level in LEVELS:
        if count := report.get(f"num_problems_{level}"):
            cells[level] = f"{percent(report.get(f'answer_accuracy_{level}'))} of {int(count)}"
    if count := report.get("num_contexts"):
        cells["contexts all right %"] = f"{percent(report['context_accuracy'])} of {int(count)}"
    return cells

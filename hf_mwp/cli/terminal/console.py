"""What the commands print, on one process of a distributed run only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from ...runs.main_process import is_main_process


if TYPE_CHECKING:
    from ...solving.solver_prediction import SolverPrediction


def make_console(**kwargs) -> Console:
    """
    A console that is silent on all processes but the first; `kwargs` are those of `rich.console.Console`. Also turns
    off the progress bars of the libraries, which would run through the commands' own.
    """
    import datasets
    from transformers.utils import logging

    datasets.disable_progress_bars()
    logging.disable_progress_bar()
    console = Console(quiet=not is_main_process(), highlight=False, **kwargs)
    if not console.is_terminal:
        console.width = 120
    return console


def percent(fraction: float | None) -> str:
    """A share as percent with one decimal; a dash where there is none."""
    return "-" if fraction is None else f"{100 * fraction:.1f}"


def judged(report: Mapping[str, float]) -> str:
    """How many problems the answers of a report are a share of, and how many could not be judged."""
    left_out = int(report.get("num_unjudged", 0))
    return f"{int(report.get('num_problems', 0))}" + (f" ({left_out} left out)" if left_out else "")


def of_equations(report: Mapping[str, float], prefix: str = "") -> str:
    """What to write behind an equation accuracy: its count, if that is not the count of the problems."""
    count = report.get(f"{prefix}num_equations")
    differs = count not in (None, 0, report.get(f"{prefix}num_problems"))
    return f" of {int(count)}" if differs else ""


def accuracy_table(title: str, reports: Mapping[str, Mapping[str, float]], remark: str = "") -> Table:
    """
    A table of accuracies in percent, one line per report.

    Args:
        title (`str`): Heading.
        reports (`Mapping[str, Mapping]`): Results of [`metrics.accuracy_report`] by the name of the line.
        remark (`str`, *optional*): What a reader has to know, a line of its own below the heading.
    """
    levels = [
        level for level in ("low", "medium", "high") if any(f"num_problems_{level}" in r for r in reports.values())
    ]
    table = Table(title=f"{title}\n{remark}" if remark else title, title_justify="left")
    table.add_column("")
    for heading in ("problems", "answer %", "equation %", *levels):
        table.add_column(heading, justify="right")
    for name, report in reports.items():
        cells = [judged(report), percent(report.get("answer_accuracy"))]
        cells.append(percent(report.get("equation_accuracy")) + of_equations(report))
        for level in levels:
            count = report.get(f"num_problems_{level}")
            cells.append(f"{percent(report.get(f'answer_accuracy_{level}'))} of {int(count)}" if count else "-")
        table.add_row(name, *cells)
    return table


def reason_table(predictions: Sequence[SolverPrediction]) -> Table:
    """A table of why predictions are wrong, the most frequent reason first."""
    from ...metrics import FAILURE_REASONS, reason_counts

    table = Table(title="Why answers are wrong", title_justify="left")
    table.add_column("reason")
    table.add_column("problems", justify="right")
    table.add_column("meaning")
    for reason, count in reason_counts([prediction.score for prediction in predictions]).items():
        table.add_row(reason, str(count), FAILURE_REASONS[reason])
    return table


def side_by_side(
    without: Mapping[str, Mapping[str, float]], reranked: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Reports without and with re-ranking, of each group of problems one after the other."""
    return {
        f"{name}, {how} re-ranking": reports[name]
        for name in reranked
        for how, reports in (("without", without), ("with", reranked))
    }

"""What the commands print, on one process of a distributed run only."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import track
from rich.segment import Segment
from rich.table import Table

from ...problems.control_characters import show_controls
from ...store.runs.main_process import is_main_process
from ...tasks.accuracy_cells import accuracy_cells
from ...tasks.accuracy_cells import of_equations as of_equations
from ...tasks.accuracy_cells import percent as percent


if TYPE_CHECKING:
    from ...tasks.evaluation import Evaluation


class EscapingConsole(Console):
    """Console that shows the control characters of texts as escapes, so that no problem commands the terminal."""

    def render(self, renderable, options=None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=show_controls(segment.text))


def make_console(**kwargs) -> Console:
    """
    A console that is silent on all processes but the first; `kwargs` are those of `rich.console.Console`. Also turns
    off the progress bars of the libraries, which would run through the commands' own.
    """
    import datasets
    from transformers.utils import logging

    datasets.disable_progress_bars()
    logging.disable_progress_bar()
    console = EscapingConsole(quiet=not is_main_process(), highlight=False, **kwargs)
    if not console.is_terminal:
        console.width = 120
    return console


def solving_bar(console: Console, name: str = "Solving") -> Callable[[Sequence], Iterable]:
    """A progress bar over batches, as [`solve_problems`] takes it."""
    return partial(track, description=name, console=console, transient=True, disable=console.quiet)


def make_table(
    title: str, headings: Sequence[str], rows: Iterable[Iterable[str]], right: Collection[str] = ()
) -> Table:
    """A table with these columns, the numbers of those in `right` standing below each other."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*row)
    return table


def accuracy_table(
    title: str,
    reports: Mapping[str, Mapping[str, float]],
    remark: str = "",
    cells_of: Callable[[Mapping[str, float]], Mapping[str, str]] = accuracy_cells,
) -> Table:
    """
    A table of figures, one line per report, its cells by heading as `cells_of` gives them ([`~Task.cells`]); a remark
    is a line of its own below the heading.
    """
    cells = {name: cells_of(report) for name, report in reports.items()}
    headings = list(dict.fromkeys(heading for line in cells.values() for heading in line))
    rows = ((name, *(line.get(heading, "-") for heading in headings)) for name, line in cells.items())
    return make_table(f"{title}\n{remark}" if remark else title, ["", *headings], rows, right=headings)


def reason_table(failures: Mapping[str, tuple[int, str]]) -> Table:
    """A table of why predictions are wrong ([`~Task.failures`]), the most frequent reason first."""
    rows = ((reason, str(count), meaning) for reason, (count, meaning) in failures.items())
    return make_table("Why answers are wrong", ["reason", "problems", "meaning"], rows, right=["problems"])


def print_evaluation(
    console: Console,
    evaluation: Evaluation,
    name: str,
    reports: Mapping[str, Mapping[str, float]] | None = None,
    reasons: bool = True,
) -> None:
    """Prints the figures of an evaluation, or the `reports` given instead, and why predictions are wrong."""
    task, remark = evaluation.task, evaluation.figures["training_texts"]["remark"]
    title = f"{name}, {evaluation.heading}"
    console.print(accuracy_table(title, reports or evaluation.reports, remark, task.cells))
    failures = task.failures(evaluation.predictions) if reasons else {}
    if failures:
        console.print(reason_table(failures))


def calibration_table(report: Mapping[str, Any]) -> Table:
    """What [`metrics.calibration_report`] found."""
    auroc = report["auroc"]
    surest = f"answers right among the {report['num_surer_half']} surest of {report['num_problems']}"
    rows = (
        (
            "expected calibration error",
            f"{report['expected_calibration_error']:.3f}",
            f"mean distance of probability and accuracy, {report['num_bins']} bins",
        ),
        ("AUROC", "-" if auroc is None else f"{auroc:.3f}", "how often a right answer is surer than a wrong one"),
        ("surer half %", percent(report["surer_half_accuracy"]), surest),
    )
    headings = ("figure", "value", "meaning")
    return make_table("Whether its probability says what is right", headings, rows, right=["value"])


def side_by_side(
    without: Mapping[str, Mapping[str, float]], reranked: Mapping[str, Mapping[str, float]]
) -> dict[str, Mapping[str, float]]:
    """Reports without and with re-ranking, of each group of problems one after the other."""
    return {
        f"{name}, {how} re-ranking": reports[name]
        for name in reranked
        for how, reports in (("without", without), ("with", reranked))
    }

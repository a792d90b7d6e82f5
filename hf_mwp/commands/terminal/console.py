"""Console, tables and solutions of the commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from itertools import chain
from textwrap import indent
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from hf_mwp.commands.tasks.reporter import Reporter
from hf_mwp.runtime.answer import rounding_remark
from hf_mwp.runtime.expressions import Expression, draw
from hf_mwp.solver.metrics.accuracy import LEVELS, metric_cell, report_cells
from hf_mwp.utils.control_characters import show_controls
from hf_mwp.utils.main_process import is_main_process

from .counting_bar import counting_bar


if TYPE_CHECKING:
    from transformers import Trainer

    from hf_mwp.commands.tasks.evaluation import Evaluation
    from hf_mwp.commands.training import RunResult


class CommandConsole(Console, Reporter):
    """Console that prints strings as they are: no markup, emoji codes or highlighting (`mawps:train:` would become a
    picture), and control characters are escaped, so that the texts of problems cannot control the terminal."""

    def __init__(self, **kwargs) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **kwargs)

    def render(self, renderable, options=None) -> Iterable[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=show_controls(segment.text))

    def counter(self, name: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
        return counting_bar(self, name)

    def follow(self, trainer: Trainer, name: str) -> AbstractContextManager:
        from .progress import RichProgressCallback

        return closing(RichProgressCallback.attach(trainer, self, name))


def quiet_libraries() -> None:
    """Disable the progress bars of the libraries, which would disturb the progress bars of the commands."""
    from transformers.utils import logging

    logging.disable_progress_bar()
    if "datasets" in sys.modules:
        sys.modules["datasets"].disable_progress_bars()
    else:
        # The import takes a second, and some commands do not need the library, which reads this variable.
        os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")


def make_console(**kwargs) -> CommandConsole:
    """Return a console that prints only on the main process; `kwargs` are passed to `rich.console.Console`."""
    console = CommandConsole(quiet=not is_main_process(), **kwargs)
    if not console.is_terminal:
        console.width = 120
    return console


def make_table(title: str, headings: Sequence[str], rows: Iterable[Iterable[str]], right: Sequence[str] = ()) -> Table:
    """Return a table; columns whose heading is in `right` are right-aligned."""
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, justify="right" if heading in right else "left")
    for row in rows:
        table.add_row(*row)
    return table


def accuracy_table(title: str, reports: Mapping[str, Mapping[str, float]], remark: str = "") -> Table:
    """Return a table with one row per report of a task, and a remark below the title."""
    # Name of a report -> its cells by heading.
    cells = {name: report_cells(report) for name, report in reports.items()}
    headings = list(dict.fromkeys(chain.from_iterable(cells.values())))
    rows = []
    for name, cell_of in cells.items():
        rows.append([name, *(cell_of.get(heading, "-") for heading in headings)])
    levels = [heading for heading in headings if heading in LEVELS]
    if levels:
        title += f"\n({', '.join(levels)}: complexity of the target equation)"
    if remark:
        title += f"\n{remark}"
    return make_table(title, ["", *headings], rows, right=headings)


def print_evaluation(
    console: Console,
    evaluation: Evaluation,
    name: str,
    reports: Mapping[str, Mapping[str, float]] | None = None,
    reasons: bool = True,
) -> None:
    """Print the metrics of an evaluation (or the given `reports`) and the reasons for wrong predictions."""
    remark = evaluation.metrics["training_texts"]["remark"]
    console.print(accuracy_table(f"{name}, {evaluation.heading}", reports or evaluation.reports, remark))
    failures = evaluation.failures if reasons else {}
    if failures:
        rows = [(reason, str(num_problems), meaning) for (reason, meaning), num_problems in failures.items()]
        headings = ("reason", "problems", "meaning")
        console.print(make_table("Why answers are wrong", headings, rows, right=["problems"]))


def print_result(console: Console, result: RunResult, name: str) -> None:
    """Print the metrics of a training run and the contents of its folder."""
    from hf_mwp.utils.run_folder import describe_contents

    for split, evaluation in result.evaluations.items():
        print_evaluation(console, evaluation, name, reasons=split == "test")
    console.print(describe_contents(result.folder, "model", "processor"))


def model_table(
    title: str, models: Sequence[Mapping[str, Any]], columns: Mapping[str, Callable[[Mapping], str]], metric: str
) -> Table:
    """Return a table of the models in a run's `metrics.json`: cells from `columns`, and a metric on each split."""
    splits = [split for split in ("validation", "test") if split in models[-1]]
    metric_heading, _ = metric_cell(metric, None)
    headings = [*columns, *(f"{split}, {metric_heading}" for split in splits)]
    rows = []
    for model in models:
        row = [column(model) for column in columns.values()]
        for split in splits:
            value = model[split]["reports"]["all problems"].get(metric)
            _, cell = metric_cell(metric, value)
            row.append(cell)
        rows.append(row)
    return make_table(title, headings, rows, right=headings[1:])


def print_solution(console: Console, text: str, results: list[dict[str, Any]], tree: bool = True) -> None:
    """Print a problem and the results of the pipeline, best first: equation, value and tree."""
    if len(text) > 1000:
        text = f"{text[:1000]}... ({len(text)} characters)"
    console.print(Text(text, style="bold"))
    for result in results:
        if "warning" in result:
            console.print(Text(f"  {result['warning']}", style="yellow"))
        if "candidates" in result:
            console.print(Text(f"  {result['error']} It may be:", style="yellow"))
            for candidate in result["candidates"]:
                value = "no value" if candidate["value"] is None else candidate["value"]
                line = f"    {candidate['equation']} = {value}   (probability {candidate['score']:.2f})"
                console.print(Text(line))
            continue
        if result["equation"] is None:
            console.print(Text(f"  no answer: {result['error']}", style="red"))
            continue
        if result["answer"] is None:
            console.print(Text(f"  {result['equation']}: {result['error']}", style="red"))
        else:
            value = result["value"]
            if "/" in value:
                value += f" = {result['answer']:.10g}"
            if "percent" in result:
                value += f" = {result['percent']}"
            if "rounded" in result:
                value += f", {rounding_remark(result['rounded'])}"
            certainty = f"probability {result['score']:.2f}"
            if "plausibility" in result:
                certainty += f", plausibility {result['plausibility']:.2f}"
            line = Text(f"  {result['equation']} = ").append(value, style="bold green")
            console.print(line.append(f"   ({certainty})", style="dim"))
        if result.get("violations"):
            console.print(Text(f"    against it: {', '.join(result['violations'])}", style="dim"))
        replaced = result.get("instead_of")
        if replaced:
            line = f"  instead of {replaced['equation']} = {replaced['answer']:.10g}"
            if replaced["violations"]:
                line += f": {', '.join(replaced['violations'])}"
            console.print(Text(line, style="dim"))
        if tree:
            drawing = draw(Expression.from_prefix(result["prefix"]).bind(result["numbers"]))
            console.print(Text(indent(drawing, "    ")))
    console.print()

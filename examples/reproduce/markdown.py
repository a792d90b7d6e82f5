"""Conversion of results to Markdown, with the paper's figures beside the measured ones."""

from collections.abc import Mapping
from typing import Any

from .paired_interval import Comparison, compare_arms
from .table import Column
from .table_result import TableResult


def to_markdown(result: TableResult, picture: str | None = None) -> str:
    """
    Return results as Markdown: the table, then budget, teacher, data, seeds and machine; `picture` is the path of
    their picture, relative to the Markdown file.
    """
    heading = f"# {result.title}"
    if result.caution:
        heading += f" ({result.caution})"
    command = result.command or f"python examples/reproduce.py {result.table}"
    lines = [heading, "", f"Paper: {result.paper}. Command: `{command}`.", "", *_grid(result)]
    if result.note:
        lines += ["", " ".join(result.note.split())]
    for section in (_notes(result), _differences(result), _origin(result)):
        if section:
            lines += ["", *section]
    if picture is not None:
        lines += ["", f"![{result.title}]({picture})"]
    return "\n".join(lines) + "\n"


def _grid(result: TableResult) -> list[str]:
    """Return the table of the arms, with the paper's figures beside the measured ones."""
    columns = result.shown_columns
    paper_columns = set()
    for arm in result.arms:
        paper_columns.update(arm.paper)

    headings = ["arm"]
    for column in columns:
        headings.append(_heading(column))
        if column.name in paper_columns:
            headings.append("paper")
    headings.append("seconds")
    rows = [_cells(headings), _cells(["---"] + ["---:"] * (len(headings) - 1))]

    for arm in result.arms:
        cells = [arm.title]
        for column in columns:
            cells.append(column.show(arm.mean(column.name), arm.deviation(column.name)))
            if column.name in paper_columns:
                cells.append(column.show(arm.paper.get(column.name)))
        if arm.seconds is None:
            cells.append("-")
        else:
            cells.append(f"{arm.seconds:.0f}")
        rows.append(_cells(cells))
    return rows


def _notes(result: TableResult) -> list[str]:
    """Return the notes on arms, missing columns and runs that are not done."""
    notes = []
    for arm in result.arms:
        if arm.note:
            notes.append(f"- {arm.title}: {' '.join(arm.note.split())}")

    titles_by_reason: dict[str, list[str]] = {}
    for column in result.columns:
        if "missing" in column:
            titles_by_reason.setdefault(column["missing"], []).append(column["title"])
    for reason, titles in titles_by_reason.items():
        notes.append(f"- No column {', '.join(titles)}: {reason}")

    waiting = []
    for arm in result.arms:
        for run in arm.runs:
            if run.reason:
                notes.append(f"- {arm.title}, seed {run.seed}: {run.state}: {run.reason}")
        if arm.states == {"waiting"}:
            waiting.append(arm.title)
    if waiting:
        notes.append(f"- Not run: {'; '.join(waiting)}")
    return notes


def _heading(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def _differences(result: TableResult) -> list[str]:
    """Return a table of the arms that are compared with a different arm, and how its intervals were made."""
    comparisons = compare_arms(result)
    compared = set()
    for comparison in comparisons:
        compared.update(comparison.intervals)
    columns = [column for column in result.shown_columns if column.name in compared]
    if not columns:
        return []

    headings = ["difference, 95 % interval"]
    for column in columns:
        headings.append(_heading(column))
    rows = [_cells(headings), _cells(["---"] + ["---:"] * len(columns))]
    for comparison in comparisons:
        cells = [f"{comparison.arm.title} minus {comparison.other.title}"]
        for column in columns:
            interval = comparison.intervals.get(column.name)
            if interval is None:
                cells.append("-")
            elif interval.excludes_zero:
                cells.append(f"**{interval}**")
            else:
                cells.append(str(interval))
        rows.append(_cells(cells))
    return [*rows, "", f"Bold: the interval does not contain 0. Bootstrap over pairs: {_pairs(columns, comparisons)}."]


def _pairs(columns: list[Column], comparisons: list[Comparison]) -> str:
    """Return the number and unit of the pairs, once if they are the same in all columns."""
    pairs = {}
    for column in columns:
        for comparison in comparisons:
            interval = comparison.intervals.get(column.name)
            if interval is not None:
                pairs[column.title] = f"{interval.num_pairs:,} {interval.over}"
    if len(set(pairs.values())) == 1:
        return next(iter(pairs.values()))
    return "; ".join(f"{num_pairs} ({title})" for title, num_pairs in pairs.items())


def _origin(result: TableResult) -> list[str]:
    """Return budget, teachers, data, seeds, time and machine of the results."""
    lines = [f"- Budget: {result.budget}{_changed(result.changes)}"]
    if result.teachers:
        lines.append(f"- Teacher: {'; '.join(result.teachers)}")
    lines.append(f"- Data: {result.data}{_num_problems(result)}")
    seeds = f"- Seeds: {_join(result.seeds)}"
    if len(result.seeds) > 1:
        seeds += ", mean ± standard deviation"
    lines.append(seeds)
    lines.append(
        f"- Time: {result.seconds:.0f} seconds for all stages, each once (an arm's seconds have those it shares)"
    )

    measured_arms = set()
    for summary in result.parts:
        measured_arms.update(summary["arms"])
    for summary in result.parts:
        plural = "s" if len(summary["seeds"]) > 1 else ""
        seeds = f"seed{plural} {_join(summary['seeds'])}"
        arms = "; ".join(summary["arms"])
        if set(summary["arms"]) == measured_arms:
            arms = "all rows"
        changes = {name: value for name, value in summary["changes"].items() if name not in result.changes}
        measured = f"{seeds} of {', '.join(summary['columns'])}: {arms}{_changed(changes)}"
        lines.append(f"- Measured apart: {measured}. {_machine(summary['environment'])}".rstrip())
    if not result.parts:
        machine = _machine(result.environment)
        if machine:
            lines.append(f"- {machine}")
    return lines


def _num_problems(result: TableResult) -> str:
    """Return the number of problems behind the figures of each column, with the word "problems" once."""
    sizes = []
    for column in result.shown_columns:
        counts = _counts(result, column.name)
        if counts:
            word = "" if sizes else " problems"
            sizes.append(f"{_range(counts)}{word} ({column.title})")
    if not sizes:
        return ""
    return f"; figures on {', '.join(sizes)}"


def _join(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))


def _changed(changes: Mapping[str, Any]) -> str:
    if not changes:
        return ""
    changed = [f"{name} {value}" for name, value in changes.items()]
    return f", changed: {', '.join(changed)}"


def _machine(environment: Mapping[str, Any]) -> str:
    machine = environment.get("machine")
    if not machine:
        return ""
    libraries = environment.get("libraries", {})
    names = [name for name in ("hf_mwp", "torch", "transformers") if name in libraries]
    versions = ", ".join(f"{name} {libraries[name]}" for name in names)
    device = machine.get("accelerator") or "no accelerator"
    threads = f"{machine.get('torch_threads')} threads on {machine.get('cores')} cores"
    return f"Machine: {machine.get('processor')}, {threads}, {device}; {versions}"


def _counts(result: TableResult, column: str) -> list[int]:
    counts = []
    for arm in result.arms:
        for run in arm.runs:
            if column in run.counts:
                counts.append(run.counts[column])
    return counts


def _range(numbers: list[int]) -> str:
    smallest = min(numbers)
    largest = max(numbers)
    if smallest == largest:
        return f"{smallest:,}"
    return f"{smallest:,} to {largest:,}"


def _cells(cells: list[str]) -> str:
    escaped = [cell.replace("|", "/") for cell in cells]
    return f"| {' | '.join(escaped)} |"

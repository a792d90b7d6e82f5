"""Conversion of results to Markdown, with the paper's figures beside the measured ones."""

from collections.abc import Mapping
from typing import Any

from .paired_interval import compare_arms
from .table import Column
from .table_result import TableResult


def to_markdown(result: TableResult, picture: str | None = None) -> str:
    """
    Return results as Markdown: the table, then budget, teacher, data, seeds and machine; `picture` is the path of
    their picture, relative to the Markdown file.
    """
    lines = [
        f"# {result.title} ({result.caution})" if result.caution else f"# {result.title}",
        "",
        f"Paper: {result.paper}. Command: `python examples/reproduce.py {result.table}`.",
        "",
    ]
    lines += _grid(result)
    if result.note:
        lines += ["", " ".join(result.note.split())]
    notes = [f"- {arm.title}: {' '.join(arm.note.split())}" for arm in result.arms if arm.note]
    missing: dict[str, list[str]] = {}
    for column in result.columns:
        if "missing" in column:
            missing.setdefault(column["missing"], []).append(column["title"])
    notes += [f"- No column {', '.join(titles)}: {reason}" for reason, titles in missing.items()]
    notes += [
        f"- {arm.title}, seed {run.seed}: {run.state}: {run.reason}"
        for arm in result.arms
        for run in arm.runs
        if run.reason
    ]
    waiting = [arm.title for arm in result.arms if {run.state for run in arm.runs} == {"waiting"}]
    notes += [f"- Not run: {'; '.join(waiting)}"] if waiting else []
    lines += ["", *notes] if notes else []
    differences = _differences(result)
    lines += ["", *differences] if differences else []
    lines += ["", *_origin(result)]
    if picture is not None:
        lines += ["", f"![{result.title}]({picture})"]
    return "\n".join(lines) + "\n"


def _grid(result: TableResult) -> list[str]:
    headings, marks = [""], ["---"]
    columns = result.shown_columns
    with_paper = {column.name for column in columns if any(column.name in arm.paper for arm in result.arms)}
    for column in columns:
        headings += [_heading(column)] + (["paper"] if column.name in with_paper else [])
        marks += ["---:"] * (2 if column.name in with_paper else 1)
    rows = [_cells(["arm", *headings[1:], "seconds"]), _cells([*marks, "---:"])]
    for arm in result.arms:
        cells = [arm.title]
        for column in columns:
            cells.append(column.show(arm.mean(column.name), arm.deviation(column.name)))
            if column.name in with_paper:
                cells.append(column.show(arm.paper.get(column.name)))
        rows.append(_cells([*cells, "-" if arm.seconds is None else f"{arm.seconds:.0f}"]))
    return rows


def _heading(column: Column) -> str:
    return f"{column.title}, {column.unit}" if column.unit else column.title


def _differences(result: TableResult) -> list[str]:
    """Return a table of the arms that are compared with a different arm, and how its intervals were made."""
    comparisons = compare_arms(result)
    compared = {name for each in comparisons for name in each.intervals}
    columns = [column for column in result.shown_columns if column.name in compared]
    if not columns:
        return []
    rows = [
        _cells(["difference, 95 % interval", *map(_heading, columns)]),
        _cells(["---"] + ["---:"] * len(columns)),
    ]
    for each in comparisons:
        intervals = [each.intervals.get(column.name) for column in columns]
        cells = ["-" if told is None else f"**{told}**" if told.excludes_zero else str(told) for told in intervals]
        rows.append(_cells([f"{each.arm.title} minus {each.other.title}", *cells]))
    pairs = {
        column.title: f"{interval.num_pairs:,} {interval.over}"
        for column in columns
        for each in comparisons
        if (interval := each.intervals.get(column.name)) is not None
    }
    same = len(set(pairs.values())) == 1
    told = next(iter(pairs.values())) if same else "; ".join(f"{count} ({title})" for title, count in pairs.items())
    return [*rows, "", f"Bold: the interval does not contain 0. Bootstrap over pairs: {told}."]


def _origin(result: TableResult) -> list[str]:
    counted = {column.title: _counts(result, column.name) for column in result.shown_columns}
    sizes = [(title, _range(counts)) for title, counts in counted.items() if counts]
    problems = ", ".join(f"{size}{'' if at else ' problems'} ({title})" for at, (title, size) in enumerate(sizes))
    problems = f"; figures on {problems}" if problems else ""
    spread = ", mean ± standard deviation" if len(result.seeds) > 1 else ""
    lines = [
        f"- Budget: {result.budget}{_changed(result.changes)}",
        *([f"- Teacher: {'; '.join(result.teachers)}"] if result.teachers else []),
        f"- Data: {result.data}{problems}",
        f"- Seeds: {', '.join(map(str, result.seeds))}{spread}",
        f"- Time: {result.seconds:.0f} seconds for all stages, each once (an arm's seconds have those it shares)",
    ]
    measured_arms = {title for part in result.parts for title in part["arms"]}
    for part in result.parts:
        own = {name: value for name, value in part["changes"].items() if name not in result.changes}
        seeds = f"seed{'s' if len(part['seeds']) > 1 else ''} {', '.join(map(str, part['seeds']))}"
        arms = "all rows" if set(part["arms"]) == measured_arms else "; ".join(part["arms"])
        measured = f"{seeds} of {', '.join(part['columns'])}: {arms}{_changed(own)}"
        lines.append(f"- Measured apart: {measured}. {_machine(part['environment'])}".rstrip())
    if not result.parts and (machine := _machine(result.environment)):
        lines.append(f"- {machine}")
    return lines


def _changed(changes: Mapping[str, Any]) -> str:
    return f", changed: {', '.join(f'{key} {value}' for key, value in changes.items())}" if changes else ""


def _machine(environment: Mapping[str, Any]) -> str:
    machine, libraries = environment.get("machine"), environment.get("libraries", {})
    if not machine:
        return ""
    versions = ", ".join(
        f"{name} {libraries[name]}" for name in ("hf_mwp", "torch", "transformers") if name in libraries
    )
    device = machine.get("accelerator") or "no accelerator"
    threads = f"{machine.get('torch_threads')} threads on {machine.get('cores')} cores"
    return f"Machine: {machine.get('processor')}, {threads}, {device}; {versions}"


def _counts(result: TableResult, column: str) -> list[int]:
    return [run.counts[column] for arm in result.arms for run in arm.runs if column in run.counts]


def _range(numbers: list[int]) -> str:
    return f"{min(numbers):,}" if min(numbers) == max(numbers) else f"{min(numbers):,} to {max(numbers):,}"


def _cells(cells: list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

"""Join results of one table from several machines: seeds, arms or columns."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from .arm_result import ArmResult, ArmRun
from .column import DERIVED
from .report_error import ReportError
from .table_result import TableResult


# Must be equal in all files.
SHARED = {
    "table": lambda result: result.table,
    "budget": lambda result: result.budget,
    "columns": lambda result: [column["name"] for column in result.columns],
    "arms": lambda result: [arm.name for arm in result.arms],
}
STATES = ("done", "failed", "skipped", "waiting")  # a joined run has the first of these states found in its runs


def join_results(paths: Sequence[str | Path]) -> TableResult:
    """
    Join the results of several files of one table and budget. Machines and changes to the recipe, such as `bf16`, may
    differ; the joined results list them for each file.

    Raises:
        ReportError: the files differ in table, budget, columns or arms, or in the figure of an arm and seed.
    """
    found = {str(path): TableResult.load(path) for path in paths}
    (first_path, first), *others = found.items()
    for path, result in others:
        for name, of in SHARED.items():
            if of(result) != of(first):
                raise ReportError(f"{path} and {first_path} differ in the {name}. Join results of one table only.")
    results = list(found.values())
    parts = [part for result in results for part in result.parts or [_part(result)]]
    columns = [_column(each) for each in zip(*(result.columns for result in results), strict=True)]
    derived = {column["name"] for column in columns if {*DERIVED} & {*column}}
    arms = zip(*(result.arms for result in results), strict=True)
    joined = replace(
        first,
        seeds=list(dict.fromkeys(seed for result in results for seed in result.seeds)),
        columns=columns,
        arms=[_arm(dict(zip(found, each, strict=True)), derived) for each in arms],
        data="; ".join(dict.fromkeys(part for result in results for part in result.data.split("; "))),
        changes={
            name: value
            for name, value in parts[0]["changes"].items()
            if all(name in part["changes"] and part["changes"][name] == value for part in parts)
        },
        environment=parts[-1]["environment"],
        parts=parts,
    )
    joined.derive()
    for column in columns:
        # A column may be computed from columns in several files.
        if any(arm.values(column["name"]) for arm in joined.arms):
            column.pop("missing", None)
    return joined


def _part(result: TableResult) -> dict[str, Any]:
    """Return the measured seeds, arms and columns of one file, with changes and environment."""
    measured = [
        column["title"]
        for column in result.columns
        if not {*DERIVED, "optional"} & {*column} and any(arm.values(column["name"]) for arm in result.arms)
    ]
    arms = [arm.title for arm in result.arms if any(run.state == "done" for run in arm.runs)]
    return {
        "seeds": result.seeds,
        "arms": arms,
        "columns": measured,
        "changes": result.changes,
        "environment": result.environment,
    }


def _column(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join a column, which is only missing if it is missing in all files."""
    column = {name: value for each in columns for name, value in each.items()}
    if not all("missing" in each for each in columns):
        column.pop("missing", None)
    return column


def _arm(arms: Mapping[str, ArmResult], derived: set[str]) -> ArmResult:
    """Join an arm with all seeds from all files."""
    runs: dict[int, ArmRun] = {}
    sources: dict[tuple[int, str], str] = {}
    for path, arm in arms.items():
        for run in arm.runs:
            whole = runs.setdefault(run.seed, ArmRun(run.seed))
            measured = [column for column in run.figures if column not in derived]
            for column in measured:
                figure, other = run.figures[column], whole.figures.get(column)
                if other not in (None, figure):
                    raise ReportError(
                        f"{path}: arm {arm.name!r}, seed {run.seed}, has {figure} in the column {column!r}, and "
                        f"{sources[run.seed, column]} has {other}; leave one of them out."
                    )
                sources[run.seed, column] = path
            for name in ("figures", "counts", "outcomes", "examples"):
                known = getattr(run, name)
                getattr(whole, name).update({column: known[column] for column in measured if column in known})
            whole.stages = list({stage["fingerprint"]: stage for stage in [*whole.stages, *run.stages]}.values())
            whole.seconds = round(sum(stage["seconds"] for stage in whole.stages), 1)
            whole.state = min(whole.state, run.state, key=STATES.index)
            whole.reason = "" if whole.state == "done" else whole.reason or run.reason
            whole.teacher = "; ".join(dict.fromkeys([*whole.teachers, *run.teachers]))
    return replace(next(iter(arms.values())), runs=list(runs.values()))

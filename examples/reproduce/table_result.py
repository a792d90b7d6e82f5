"""Results of a table and of its arms, and the results of several files joined."""

import dataclasses
import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from hf_mwp.commands.recipes.running import caution
from hf_mwp.utils.files import write_atomically

from .table import DERIVED, Column, ReportError


VERSION = 1
# Must be equal in all files.
SHARED = {
    "table": lambda result: result.table,
    "budget": lambda result: result.budget,
    "columns": lambda result: [column["name"] for column in result.columns],
    "arms": lambda result: [arm.name for arm in result.arms],
}
STATES = ("done", "failed", "skipped", "waiting")  # a joined run has the first of these states found in its runs


@dataclass
class ArmRun:
    """Results of an arm with one seed."""

    seed: int
    # done: all figures exist; skipped: weights or data are unavailable; failed: a stage raised an error;
    # waiting: neither selected nor found.
    state: str = "waiting"
    figures: dict[str, float] = field(default_factory=dict)  # by column, in the column's unit
    counts: dict[str, int] = field(default_factory=dict)  # number of problems of a figure that is a share
    seconds: float = 0.0  # of all its stages, including those shared with other arms
    stages: list[dict[str, Any]] = field(default_factory=list)  # `stage`, `folder`, `fingerprint`, `seconds` of each
    teacher: str = ""  # description of the teacher; "; " between several
    reason: str = ""  # why the run is not done
    outcomes: dict[str, str] = field(default_factory=dict)  # by column, the outcome of each problem, 0 or 1
    examples: dict[str, dict[str, str]] = field(default_factory=dict)  # by column, `predictions` and `labels`

    @property
    def teachers(self) -> list[str]:
        """Descriptions of the teachers, several if columns have different teachers."""
        if not self.teacher:
            return []
        return self.teacher.split("; ")


@dataclass
class ArmResult:
    """Results of an arm with all its seeds; name, title and note are those of the table."""

    name: str
    title: str
    paper: dict[str, float] = field(default_factory=dict)  # the paper's figures by column
    note: str = ""
    runs: list[ArmRun] = field(default_factory=list)  # one for each seed
    x: float | None = None  # position in a sweep
    compare_with: str = ""  # arms to compare with, separated by spaces

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Reverse `dataclasses.asdict`."""
        runs = [ArmRun(**run) for run in content["runs"]]
        return cls(**{**content, "runs": runs})

    def values(self, column: str) -> list[float]:
        """Return the figures of a column, one for each seed that has one."""
        return [run.figures[column] for run in self.runs if column in run.figures]

    def mean(self, column: str) -> float | None:
        """Return the mean over the seeds; `None` without a figure."""
        values = self.values(column)
        return statistics.fmean(values) if values else None

    def deviation(self, column: str) -> float | None:
        """Return the standard deviation of the sample of seeds; `None` with fewer than two figures."""
        values = self.values(column)
        return statistics.stdev(values) if len(values) > 1 else None

    @property
    def states(self) -> set[str]:
        """States of the runs."""
        return {run.state for run in self.runs}

    @property
    def seconds(self) -> float | None:
        """Mean seconds of the runs that are done; `None` if there are none."""
        seconds = [run.seconds for run in self.runs if run.state == "done"]
        return statistics.fmean(seconds) if seconds else None


@dataclass
class TableResult:
    """Results of a table, the source of its Markdown and picture; title, paper and note are those of its file."""

    table: str  # its name
    title: str
    paper: str
    note: str
    budget: str  # of the recipe
    seeds: list[int]  # of each arm
    # `name`, `title`, `unit`; if they apply, `missing`: why the column is empty, `part_of`: the column that it is
    # pooled in, `metric`: what is computed from its examples, `optional`: shown without being compared, and
    # `mean_of`, `pooled_of`, `share_of`: the columns that it is computed from.
    columns: list[dict[str, Any]]
    arms: list[ArmResult]  # the rows
    data: str = ""  # dataset and its size
    command: str = ""  # that makes the table, if it is not `reproduce.py`
    x: str = ""  # variable of a sweep, or empty
    compare_with: str = ""  # arms to compare the others with, or empty
    changes: dict[str, Any] = field(default_factory=dict)  # from the command line
    environment: dict[str, Any] = field(default_factory=dict)  # versions of libraries, machine, revision, time
    # Parts of joined results: `seeds`, `arms` and `columns` that have figures, `changes` and `environment` of each.
    parts: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file written by [`save`](TableResult.save). Raises `ReportError` for other files."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("version") != VERSION:
                raise ReportError(f"{path} was written by another version of this script. Run the table again.")
            content.pop("caution", None)
            content["arms"] = [ArmResult.from_dict(arm) for arm in content["arms"]]
            return cls(**content)
        except FileNotFoundError:
            raise ReportError(f"There is no file {path}.") from None
        except ReportError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReportError(f"{path} has no table results: {error!r}") from error

    def save(self, path: str | Path) -> None:
        """Write the results as JSON, atomically."""
        content: dict[str, Any] = {"version": VERSION}
        if self.caution:
            content["caution"] = self.caution
        content.update(dataclasses.asdict(self))
        write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")

    def derive(self) -> None:
        """Compute the columns derived from other columns, in each run that has these."""
        runs = []
        figures = {}
        for arm in self.arms:
            runs.extend(arm.runs)
            figures[arm.name] = {run.seed: run.figures for run in arm.runs}
        for column in self.columns:
            name = column["name"]
            for run in runs:
                if "pooled_of" in column:
                    _pool(name, column["pooled_of"], run)
                elif "mean_of" in column and run.figures.keys() >= set(column["mean_of"]):
                    values = [run.figures[source] for source in column["mean_of"]]
                    run.figures[name] = round(sum(values) / len(values), 4)
                elif "share_of" in column:
                    source = column["share_of"]["column"]
                    reference = figures[column["share_of"]["arm"]].get(run.seed, {}).get(source)
                    if reference and source in run.figures:
                        run.figures[name] = round(100 * run.figures[source] / reference, 4)

    @property
    def caution(self) -> str:
        """Warning about the budget, or an empty string."""
        return caution(self.budget)

    @property
    def file_name(self) -> str:
        """File name of the results, without extension."""
        return f"{self.table}-{self.budget}"

    @property
    def shown_columns(self) -> list[Column]:
        """Columns that are not missing, in order, with the fields needed to show them."""
        columns = []
        for fields in self.columns:
            if "missing" not in fields:
                metric = fields.get("metric")
                optional = "optional" in fields
                columns.append(
                    Column(fields["name"], fields["title"], fields["unit"], metric=metric, optional=optional)
                )
        return columns

    @property
    def failed(self) -> list[str]:
        """Names of the arms with a failed run."""
        return [arm.name for arm in self.arms if "failed" in arm.states]

    @property
    def seconds(self) -> float:
        """Wall time of all stages, each counted once."""
        seconds = {}
        for arm in self.arms:
            for run in arm.runs:
                for stage in run.stages:
                    seconds[stage["fingerprint"]] = stage["seconds"]
        return sum(seconds.values())

    @property
    def teachers(self) -> list[str]:
        """Descriptions of the arms' teachers, each once."""
        teachers = []
        for arm in self.arms:
            for run in arm.runs:
                teachers.extend(run.teachers)
        return list(dict.fromkeys(teachers))


def _pool(name: str, sources: list[str], run: ArmRun) -> None:
    """Compute the share over the problems of all pooled columns."""
    num_problems = 0
    total = 0
    for source in sources:
        if not run.counts.get(source) or source not in run.figures:
            return
        num_problems += run.counts[source]
        total += run.figures[source] * run.counts[source]
    run.counts[name] = num_problems
    run.figures[name] = round(total / num_problems, 4)
    if run.outcomes.keys() >= set(sources):
        run.outcomes[name] = "".join(run.outcomes[source] for source in sources)


def join_results(paths: Sequence[str | Path]) -> TableResult:
    """
    Join the results of several files of one table and budget. Machines and changes to the recipe, such as `bf16`, may
    differ; the joined results list them for each file.

    Raises:
        ReportError: the files differ in table, budget, columns or arms, or in the figure of an arm and seed.
    """
    results = {str(path): TableResult.load(path) for path in paths}
    (first_path, first), *rest = results.items()
    for path, result in rest:
        for name, read in SHARED.items():
            if read(result) != read(first):
                raise ReportError(f"{path} and {first_path} differ in the {name}. Join results of one table only.")

    seeds = []
    data_sets = []
    summaries = []
    columns_of_files = []
    arms_of_files = []
    for result in results.values():
        seeds.extend(result.seeds)
        data_sets.extend(result.data.split("; "))
        summaries.extend(result.parts or [_summary(result)])
        columns_of_files.append(result.columns)
        arms_of_files.append(result.arms)
    columns = [_column(versions) for versions in zip(*columns_of_files, strict=True)]
    derived = {column["name"] for column in columns if column.keys() & set(DERIVED)}
    arms = []
    for versions in zip(*arms_of_files, strict=True):
        arms_by_path = dict(zip(results, versions, strict=True))
        arms.append(_arm(arms_by_path, derived))
    # Only the changes that all files have in common.
    first_changes = summaries[0]["changes"]
    changes = dict(first_changes)
    for summary in summaries:
        for name, value in first_changes.items():
            if name not in summary["changes"] or summary["changes"][name] != value:
                changes.pop(name, None)

    joined = replace(
        first,
        seeds=list(dict.fromkeys(seeds)),
        columns=columns,
        arms=arms,
        data="; ".join(dict.fromkeys(data_sets)),
        changes=changes,
        environment=summaries[-1]["environment"],
        parts=summaries,
    )
    joined.derive()
    for column in columns:
        # A column may be computed from columns in several files.
        if any(arm.values(column["name"]) for arm in joined.arms):
            column.pop("missing", None)
    return joined


def _summary(result: TableResult) -> dict[str, Any]:
    """Return the measured seeds, arms and columns of one file, with changes and environment."""
    measured = []
    for column in result.columns:
        is_measured = not column.keys() & {*DERIVED, "optional"}
        if is_measured and any(arm.values(column["name"]) for arm in result.arms):
            measured.append(column["title"])
    arms = [arm.title for arm in result.arms if "done" in arm.states]
    return {
        "seeds": result.seeds,
        "arms": arms,
        "columns": measured,
        "changes": result.changes,
        "environment": result.environment,
    }


def _column(columns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Join a column, which is only missing if it is missing in all files."""
    joined = {}
    for column in columns:
        joined.update(column)
    if not all("missing" in column for column in columns):
        joined.pop("missing", None)
    return joined


def _arm(arms: Mapping[str, ArmResult], derived: set[str]) -> ArmResult:
    """Join an arm with all seeds from all files."""
    runs: dict[int, ArmRun] = {}
    sources: dict[tuple[int, str], str] = {}
    for path, arm in arms.items():
        for run in arm.runs:
            joined = runs.setdefault(run.seed, ArmRun(run.seed))
            measured = [column for column in run.figures if column not in derived]
            for column in measured:
                figure = run.figures[column]
                previous = joined.figures.get(column)
                if previous not in (None, figure):
                    raise ReportError(
                        f"{path}: arm {arm.name!r}, seed {run.seed}, has {figure} in the column {column!r}, and "
                        f"{sources[run.seed, column]} has {previous}; leave one of them out."
                    )
                sources[run.seed, column] = path
            for name in ("figures", "counts", "outcomes", "examples"):
                values = getattr(run, name)
                joined_values = getattr(joined, name)
                for column in measured:
                    if column in values:
                        joined_values[column] = values[column]
            stages = {stage["fingerprint"]: stage for stage in [*joined.stages, *run.stages]}
            joined.stages = list(stages.values())
            joined.seconds = round(sum(stage["seconds"] for stage in joined.stages), 1)
            joined.state = min(joined.state, run.state, key=STATES.index)
            if joined.state == "done":
                joined.reason = ""
            elif not joined.reason:
                joined.reason = run.reason
            joined.teacher = "; ".join(dict.fromkeys([*joined.teachers, *run.teachers]))
    first_arm = next(iter(arms.values()))
    return replace(first_arm, runs=list(runs.values()))

"""Results of an arm."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


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
        return self.teacher.split("; ") if self.teacher else []


@dataclass
class ArmResult:
    """Results of an arm with all its seeds; name, title and note are those of the table."""

    name: str
    title: str
    paper: dict[str, float] = field(default_factory=dict)  # the paper's figures by column
    note: str = ""
    runs: list[ArmRun] = field(default_factory=list)  # one for each seed
    x: float | None = None  # position in a sweep
    compare_with: str = ""  # arm to compare with

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Reverse `dataclasses.asdict`."""
        return cls(**{**content, "runs": [ArmRun(**run) for run in content["runs"]]})

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
    def seconds(self) -> float | None:
        """Mean seconds of the runs that are done; `None` if there are none."""
        seconds = [run.seconds for run in self.runs if run.state == "done"]
        return statistics.fmean(seconds) if seconds else None

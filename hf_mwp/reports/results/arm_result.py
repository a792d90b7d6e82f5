"""What came out of an arm."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self


@dataclass
class ArmRun:
    """An arm with one seed."""

    seed: int
    # done: all figures are there; skipped: something it needs is not at hand; waiting: not asked for and not there.
    state: str = "waiting"
    figures: dict[str, float] = field(default_factory=dict)  # by column, in the column's unit
    counts: dict[str, int] = field(default_factory=dict)  # problems that a figure is a share of
    seconds: float = 0.0  # of all its stages, those shared with other arms included
    stages: list[dict[str, Any]] = field(default_factory=list)  # `stage`, `folder`, `fingerprint`, `seconds` of each
    teacher: str = ""  # what the teacher is
    reason: str = ""  # why it is not done
    outcomes: dict[str, str] = field(default_factory=dict)  # by column, what became of each problem, 0 or 1
    examples: dict[str, dict[str, str]] = field(default_factory=dict)  # by column, `predictions` and `labels`

    @property
    def teachers(self) -> list[str]:
        """What `teacher` names, which are several where columns have their own."""
        return self.teacher.split("; ") if self.teacher else []


@dataclass
class ArmResult:
    """An arm with all its seeds; names, titles and notes are those of the table."""

    name: str
    title: str
    paper: dict[str, float] = field(default_factory=dict)  # the paper's figures by column
    note: str = ""
    runs: list[ArmRun] = field(default_factory=list)  # one for each seed
    x: float | None = None  # where it stands in a sweep
    compare_with: str = ""  # the arm that it is compared with

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """The reverse of `dataclasses.asdict`."""
        return cls(**{**content, "runs": [ArmRun(**run) for run in content["runs"]]})

    def values(self, column: str) -> list[float]:
        """The figures of a column, one for each seed that has one."""
        return [run.figures[column] for run in self.runs if column in run.figures]

    def mean(self, column: str) -> float | None:
        """Mean over the seeds; `None` without a figure."""
        values = self.values(column)
        return statistics.fmean(values) if values else None

    def deviation(self, column: str) -> float | None:
        """Standard deviation over the seeds (that of a sample); `None` with fewer than two figures."""
        values = self.values(column)
        return statistics.stdev(values) if len(values) > 1 else None

    @property
    def seconds(self) -> float | None:
        """Mean seconds of a run that is done; `None` if none is."""
        seconds = [run.seconds for run in self.runs if run.state == "done"]
        return statistics.fmean(seconds) if seconds else None

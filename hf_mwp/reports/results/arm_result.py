"""What came out of an arm."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


# done: all figures are there; skipped: something it needs is not at hand; waiting: not asked for and not there.
STATES = ("done", "skipped", "failed", "waiting")


@dataclass
class ArmRun:
    """
    An arm with one seed.

    Args:
        seed (`int`): The seed.
        state (`str`): One of [`STATES`].
        figures (`dict[str, float]`): By column, in the column's unit.
        counts (`dict[str, int]`): Problems that a figure is a share of.
        seconds (`float`): Of all its stages, those shared with other arms included.
        stages (`list[dict]`): `stage`, `folder`, `fingerprint`, `seconds` of each, in their order.
        teacher (`str`): What the teacher is.
        reason (`str`): Why it is not done.
        outcomes (`dict[str, str]`): By column, what became of each problem, 0 or 1.
        examples (`dict[str, dict[str, str]]`): By column, `predictions` and `labels` of the examples.
    """

    seed: int
    state: str = "waiting"
    figures: dict[str, float] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    stages: list[dict[str, Any]] = field(default_factory=list)
    teacher: str = ""
    reason: str = ""
    outcomes: dict[str, str] = field(default_factory=dict)
    examples: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class ArmResult:
    """
    An arm with all its seeds.

    Args:
        name, title, note (`str`): As in the table.
        paper (`dict[str, float]`): The paper's figures by column.
        runs (`list[ArmRun]`): One for each seed.
        x (`float`, *optional*): Where it stands in a sweep.
        compare_with (`str`, *optional*): The arm that it is compared with.
    """

    name: str
    title: str
    paper: dict[str, float] = field(default_factory=dict)
    note: str = ""
    runs: list[ArmRun] = field(default_factory=list)
    x: float | None = None
    compare_with: str = ""

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> ArmResult:
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

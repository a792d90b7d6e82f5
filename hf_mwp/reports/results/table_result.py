"""The results of a table, all that its Markdown and its picture are made of."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from ...recipes.recipe import caution
from ...store.files import write_whole
from ..grid.column import Column
from ..report_error import ReportError
from .arm_result import ArmResult


VERSION = 1


@dataclass
class TableResult:
    """The results of a table; title, paper and note are those of its file."""

    table: str  # its name
    title: str
    paper: str
    note: str
    budget: str  # of the recipe
    seeds: list[int]  # of each arm
    # `name`, `title`, `unit`, and `missing`: why a column is empty, `part_of`: the column that it is pooled in,
    # `metric`: what is made of its examples, `optional`: it is told, and not compared; `mean_of`, `pooled_of` and
    # `share_of`: the columns that it is made of.
    columns: list[dict[str, Any]]
    arms: list[ArmResult]  # the rows
    data: str = ""  # data set and how much of it
    x: str = ""  # the variable of a sweep; empty if the table is none
    compare_with: str = ""  # the arm that the others are compared with; empty if there is none
    changes: dict[str, Any] = field(default_factory=dict)  # from the command line
    environment: dict[str, Any] = field(default_factory=dict)  # versions of libraries, machine, revision, time
    # Of joined results, each one's `seeds`, `arms` and `columns` that have figures, `changes` and `environment`.
    parts: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Reads the file that [`save`](TableResult.save) writes; `ReportError` if it is none."""
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            if content.pop("version") != VERSION:
                raise ReportError(f"{path} was written by another version of this package; run the table again.")
            content.pop("caution", None)
            return cls(**{**content, "arms": [ArmResult.from_dict(arm) for arm in content["arms"]]})
        except FileNotFoundError:
            raise ReportError(f"There is no file {path}.") from None
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            if isinstance(error, ReportError):
                raise
            raise ReportError(f"{path} holds no results of `hf-mwp reproduce`: {error!r}") from error

    def save(self, path: str | Path) -> None:
        """Writes the results as JSON; the file is never half written."""
        told = {"caution": self.caution} if self.caution else {}
        content = {"version": VERSION, **told, **dataclasses.asdict(self)}
        write_whole(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")

    @property
    def caution(self) -> str:
        """What a reader has to know of the budget; empty if nothing. Markdown, JSON, picture and terminal say it."""
        return caution(self.budget)

    @property
    def file_name(self) -> str:
        """Name of the files of a report without their endings."""
        return f"{self.table}-{self.budget}"

    @property
    def shown_columns(self) -> list[Column]:
        """The columns that are not missing, in order, as far as showing them needs."""
        return [
            Column(each["name"], each["title"], each["unit"], metric=each.get("metric"), optional="optional" in each)
            for each in self.columns
            if "missing" not in each
        ]

    @property
    def failed(self) -> list[str]:
        """Names of the arms of which a run failed."""
        return [arm.name for arm in self.arms if any(run.state == "failed" for run in arm.runs)]

    @property
    def seconds(self) -> float:
        """Wall time of all stages, each counted once."""
        stages: dict[str, Mapping] = {s["fingerprint"]: s for arm in self.arms for run in arm.runs for s in run.stages}
        return sum(stage["seconds"] for stage in stages.values())

    @property
    def teachers(self) -> list[str]:
        """What the teachers of the arms are, each once."""
        return list(dict.fromkeys(name for arm in self.arms for run in arm.runs for name in run.teachers))

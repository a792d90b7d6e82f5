"""Results of a table."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from hf_mwp.recipes.recipe import caution
from hf_mwp.store.files import write_whole

from .arm_result import ArmResult, ArmRun
from .column import Column
from .report_error import ReportError


VERSION = 1


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
    x: str = ""  # variable of a sweep, or empty
    compare_with: str = ""  # arm to compare the others with, or empty
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
            return cls(**{**content, "arms": [ArmResult.from_dict(arm) for arm in content["arms"]]})
        except FileNotFoundError:
            raise ReportError(f"There is no file {path}.") from None
        except ReportError:
            raise
        except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
            raise ReportError(f"{path} has no table results: {error!r}") from error

    def save(self, path: str | Path) -> None:
        """Write the results as JSON, atomically."""
        warning = {"caution": self.caution} if self.caution else {}
        content = {"version": VERSION, **warning, **dataclasses.asdict(self)}
        write_whole(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")

    def derive(self) -> None:
        """Compute the columns derived from other columns, in each run that has these."""
        figures = {arm.name: {run.seed: run.figures for run in arm.runs} for arm in self.arms}
        runs = [run for arm in self.arms for run in arm.runs]
        for column in self.columns:
            name = column["name"]
            for run in runs:
                if "pooled_of" in column:
                    _pool(name, column["pooled_of"], run)
                elif "mean_of" in column and all(each in run.figures for each in column["mean_of"]):
                    values = [run.figures[each] for each in column["mean_of"]]
                    run.figures[name] = round(sum(values) / len(values), 4)
                elif "share_of" in column:
                    source = column["share_of"]["column"]
                    whole = figures[column["share_of"]["arm"]].get(run.seed, {}).get(source)
                    if whole and source in run.figures:
                        run.figures[name] = round(100 * run.figures[source] / whole, 4)

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
        return [
            Column(each["name"], each["title"], each["unit"], metric=each.get("metric"), optional="optional" in each)
            for each in self.columns
            if "missing" not in each
        ]

    @property
    def failed(self) -> list[str]:
        """Names of the arms with a failed run."""
        return [arm.name for arm in self.arms if any(run.state == "failed" for run in arm.runs)]

    @property
    def seconds(self) -> float:
        """Wall time of all stages, each counted once."""
        stages: dict[str, Mapping] = {s["fingerprint"]: s for arm in self.arms for run in arm.runs for s in run.stages}
        return sum(stage["seconds"] for stage in stages.values())

    @property
    def teachers(self) -> list[str]:
        """Descriptions of the arms' teachers, each once."""
        return list(dict.fromkeys(name for arm in self.arms for run in arm.runs for name in run.teachers))


def _pool(name: str, parts: list[str], run: ArmRun) -> None:
    """Compute the share over the problems of all pooled columns."""
    if all(run.counts.get(each) and each in run.figures for each in parts):
        run.counts[name] = sum(run.counts[each] for each in parts)
        run.figures[name] = round(sum(run.figures[each] * run.counts[each] for each in parts) / run.counts[name], 4)
        if all(each in run.outcomes for each in parts):
            run.outcomes[name] = "".join(run.outcomes[each] for each in parts)

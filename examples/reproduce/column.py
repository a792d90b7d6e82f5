"""Columns of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Template
from typing import Any, Self

from hf_mwp.metrics import GLUE_FIGURES

from .report_error import ReportError, check_fields, check_name


# Factor from a figure in `metrics.json` to the unit, and decimals shown.
UNITS = {"%": (100.0, 2), "M": (1e-6, 1), "B": (1e-9, 1), "h": (1 / 3600, 2), "": (1.0, 2)}
MEASURES = ("parameters", "flops")
# Fields with the columns that a column is computed from.
DERIVED = ("mean_of", "pooled_of", "share_of")
SOURCES = ("figure", "measure", "share_of", "mean_of", "pooled_of")


@dataclass(frozen=True)
class Column:
    """
    A column of a table. Exactly one of `figure`, `measure`, `share_of`, `mean_of` and `pooled_of` is the source of its
    figures. `${name}` in a stage or in keys is a variable of the recipe, so that arms can read different stages or
    figures.
    """

    name: str  # in the file
    title: str  # heading
    unit: str = "%"  # or "M" (millions), "B" (billions), "h" (hours, of seconds), or empty
    stage: str | None = None  # stage with the figure in its `metrics.json`
    # Keys of the figure, such as "test/reports/all problems/answer_accuracy"; the first existing one of several.
    # "stage_seconds" is the time of the stage.
    figure: str | list[str] | None = None
    optional: bool = False  # arms without the figure leave the cell empty, and the column is not compared
    count: str | list[str] | None = None  # keys of the number of problems that the figure is a share of
    outcomes: str | None = None  # keys of a string of 0 and 1, the outcome of each problem, for intervals
    examples: str | None = None  # keys of predictions and labels of each example, for a figure that is not a share
    metric: str | None = None  # the [`~metrics.GLUE_FIGURES`] that is computed from them: "f1", "spearman", ...
    measure: str | None = None  # "parameters" or "flops" of the arm's shape
    share_of: Mapping[str, str] | None = None  # `{column: ..., arm: ...}`: percent of the figure of another arm
    mean_of: list[str] | None = None  # columns to average
    pooled_of: list[str] | None = None  # columns whose problems are pooled, such as those of all folds
    needs: str | None = None  # variable without which the column stays empty, such as a folder of data
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the recipe, such as a different dataset

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any], place: str) -> Self:
        """Read a column from its mapping in the file. Raises `ReportError` for wrong fields."""
        place = f"{place}, column {name!r}"
        check_fields(cls, content, place)
        column = cls(name=name, **{"title": name, **content})
        if sum(getattr(column, key) is not None for key in SOURCES) != 1:
            raise ReportError(f"{place} must have exactly one of {', '.join(SOURCES)}.")
        if (column.figure is None) != (column.stage is None):
            raise ReportError(f"{place} must have both `stage` and `figure`, or none of them.")
        if not isinstance(column.changes, Mapping) or (column.changes and column.figure is None):
            raise ReportError(f"{place}: `changes` must be a mapping, and needs `stage` and `figure`.")
        if (column.examples is None) != (column.metric is None):
            raise ReportError(f"{place} must have both `examples` and `metric`, or none of them.")
        check_name(column.unit, UNITS, "unit", place)
        if column.metric is not None:
            check_name(column.metric, GLUE_FIGURES, "metric", place)
        if column.measure is not None:
            check_name(column.measure, MEASURES, "measure", place)
        return column

    def resolved(self, variables: Mapping[str, Any]) -> Self:
        """Return the column of one arm, with the values of the recipe's variables in its keys."""

        def fill(keys: Any) -> Any:
            if isinstance(keys, list):
                return [fill(each) for each in keys]
            return keys if keys is None else Template(keys).safe_substitute(variables)

        filled = ("stage", "figure", "count", "outcomes", "examples")
        return replace(self, **{name: fill(getattr(self, name)) for name in filled})

    def read(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """
        Read the figure, in the column's unit, and its count, outcomes and examples from a `metrics.json`; the keys are
        fields of [`ArmRun`]. Raises `ReportError` if one of them is missing, except for an optional figure.
        """
        found: dict[str, Any] = {}
        try:
            found["figures"] = round(UNITS[self.unit][0] * float(_at(metrics, self.figure)), 4)
        except ReportError:
            if not self.optional:
                raise
        if self.count is not None:
            found["counts"] = int(_at(metrics, self.count))
        if self.outcomes is not None:
            found["outcomes"] = str(_at(metrics, self.outcomes))
        if self.examples is not None and (examples := dict(_at(metrics, self.examples))):
            found["examples"] = examples
        return found

    def show(self, value: float | None, deviation: float | None = None) -> str:
        """Format a figure for the table; `None` is a dash."""
        if value is None:
            return "-"
        decimals = UNITS[self.unit][1]
        spread = "" if deviation is None else f" ± {deviation:.{decimals}f}"
        return f"{value:.{decimals}f}{spread}"


def _at(metrics: Mapping[str, Any], paths: str | list[str]) -> Any:
    """Look up the first existing path of keys; numbers are places in lists."""
    paths = [paths] if isinstance(paths, str) else paths
    for path in paths:
        value: Any = metrics
        for key in path.split("/"):
            if isinstance(value, list):
                value = dict(enumerate(value)).get(int(key) if key.isdigit() else key)
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    raise ReportError(f"The figures of the stage have no {' and no '.join(map(repr, paths))}.")

"""One column of a table: where its figures come from and how they are shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Template
from typing import Any

from ..report_error import ReportError, check_name


# What a figure in a `metrics.json` is multiplied by, and how many decimals are shown.
UNITS = {"%": (100.0, 2), "M": (1e-6, 1), "B": (1e-9, 1), "h": (1 / 3600, 2), "": (1.0, 2)}
SOURCES = ("figure", "measure", "share_of", "mean_of", "pooled_of")
MEASURES = ("parameters", "flops")


@dataclass(frozen=True)
class Column:
    """
    A column of a table. Exactly one of `figure`, `measure`, `share_of`, `mean_of` and `pooled_of` says where its
    figures come from.

    Args:
        name (`str`): Name in the file.
        title (`str`): Heading.
        unit (`str`, *optional*, defaults to `"%"`): `"%"`, `"M"` (millions), `"B"` (billions), `"h"` (hours, of
            seconds) or nothing.
        stage (`str`, *optional*):
            Stage whose `metrics.json` holds the figure; `${name}` is a variable of the recipe, so that arms may read
            stages of their own.
        figure (`str` or `list[str]`, *optional*):
            Its keys there, such as `"test/reports/all problems/answer_accuracy"`; of several, the first that is there.
            `"stage_seconds"` is the time that the stage took.
            `${name}` in them is a variable of the recipe: arms may read different figures of one stage.
        optional (`bool`, *optional*, defaults to `False`): Arms without the figure leave it empty, and it is
            not compared.
        count (`str` or `list[str]`, *optional*): Keys of the number of problems that the figure is a share of.
        outcomes (`str`, *optional*):
            Keys of a text of 0 and 1, what became of each problem, from which intervals are made.
        examples (`str`, *optional*):
            The same for a figure that is no share: keys of the predictions and labels of each example.
        metric (`str`, *optional*): Which of [`~metrics.GLUE_FIGURES`] is made of them anew: `"f1"`, `"spearman"`, ...
        measure (`str`, *optional*): `"parameters"` or `"flops"` of the arm's shape.
        share_of (`Mapping`, *optional*): `{column: ..., arm: ...}`: percent of the value of another arm.
        mean_of (`list[str]`, *optional*): Columns to average.
        pooled_of (`list[str]`, *optional*): Columns whose problems are taken together, such as those of all folds.
        changes (`Mapping`, *optional*):
            Changes of the recipe, as [`Recipe`] takes them, from which the figure is read: another data set, for one.
        needs (`str`, *optional*): Variable without which the column stays empty, such as a folder of data.
    """

    name: str
    title: str
    unit: str = "%"
    stage: str | None = None
    figure: str | list[str] | None = None
    optional: bool = False
    count: str | list[str] | None = None
    outcomes: str | None = None
    examples: str | None = None
    metric: str | None = None
    measure: str | None = None
    share_of: Mapping[str, str] | None = None
    mean_of: list[str] | None = None
    pooled_of: list[str] | None = None
    needs: str | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any], place: str) -> Column:
        """Reads a column; `ReportError` names what is wrong with it."""
        place = f"{place}, column {name!r}"
        if not isinstance(content, Mapping):
            raise ReportError(f"{place} must be a mapping.")
        for key in content:
            check_name(key, [each for each in cls.__dataclass_fields__ if each != "name"], "key", place)
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
            from ...metrics import GLUE_FIGURES

            check_name(column.metric, GLUE_FIGURES, "metric", place)
        if column.measure is not None:
            check_name(column.measure, MEASURES, "measure", place)
        return column

    def resolved(self, variables: Mapping[str, Any]) -> Column:
        """The column as an arm reads it, with the recipe's variables in its keys."""

        def fill(keys: Any) -> Any:
            if isinstance(keys, list):
                return [fill(each) for each in keys]
            return keys if keys is None else Template(keys).safe_substitute(variables)

        filled = ("stage", "figure", "count", "outcomes", "examples")
        return replace(self, **{name: fill(getattr(self, name)) for name in filled})

    def read(self, metrics: Mapping[str, Any]) -> float | None:
        """The figure of a `metrics.json` in the column's unit; `ReportError` if it is not there and not optional."""
        try:
            return UNITS[self.unit][0] * float(_at(metrics, self.figure))
        except ReportError:
            if self.optional:
                return None
            raise

    def read_count(self, metrics: Mapping[str, Any]) -> int | None:
        """The number of problems that the figure is a share of, if the column says where to find it."""
        return None if self.count is None else int(_at(metrics, self.count))

    def read_outcomes(self, metrics: Mapping[str, Any]) -> str | None:
        """What became of each problem, if the column says where to find it."""
        return None if self.outcomes is None else str(_at(metrics, self.outcomes))

    def read_examples(self, metrics: Mapping[str, Any]) -> dict[str, str] | None:
        """Predictions and labels of the examples, if the column says where to find them."""
        return None if self.examples is None else dict(_at(metrics, self.examples)) or None

    def show(self, value: float | None, deviation: float | None = None) -> str:
        """A figure as the table prints it; a dash for none."""
        if value is None:
            return "-"
        decimals = UNITS[self.unit][1]
        spread = "" if deviation is None else f" ± {deviation:.{decimals}f}"
        return f"{value:.{decimals}f}{spread}"


def _at(metrics: Mapping[str, Any], paths: str | list[str]) -> Any:
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

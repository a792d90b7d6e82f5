"""Rows of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from .report_error import ReportError, check_fields


@dataclass(frozen=True)
class Arm:
    """A row of a table: its changes to the recipe, and the paper's figures."""

    name: str  # in the file and for `--arms`
    title: str = ""  # first cell of the row; the name by default
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the recipe, see [`Recipe`]
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # further changes, by budget
    paper: Mapping[str, float] = field(default_factory=dict)  # the paper's figures by column, in the column's unit
    shape: Mapping[str, Any] | None = None  # encoder whose parameters and operations are measured: [`measure_shape`]
    weights: str | None = None  # variable with pretrained weights; the arm is skipped if they are unavailable
    layers: int | None = None  # layers that the teacher needs; the arm is skipped if it has fewer
    seeds: Mapping[str, int] = field(default_factory=dict)  # number of the table's seeds to run, by budget
    compare_with: str | None = None  # arm to compare with, instead of the table's
    missing: str | None = None  # why the arm cannot be run; only the paper's figures are shown
    note: str = ""  # for the reader

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any] | None, place: str) -> Self:
        """Read an arm from its mapping in the file. Raises `ReportError` for wrong fields."""
        place, content = f"{place}, arm {name!r}", {} if content is None else content
        check_fields(cls, content, place)
        for key in ("changes", "budgets", "paper", "seeds"):
            if not isinstance(content.get(key, {}), Mapping):
                raise ReportError(f"{place}: `{key}` must be a mapping.")
        return cls(name=name, **{"title": name, **content})

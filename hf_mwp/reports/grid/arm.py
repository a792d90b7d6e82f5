"""One row of a table."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from ..report_error import ReportError, check_fields


@dataclass(frozen=True)
class Arm:
    """A row of a table: what it changes of the recipe, and what the paper has there."""

    name: str  # in the file and for `--arms`
    title: str = ""  # first cell of the row; the name by default
    changes: Mapping[str, Any] = field(default_factory=dict)  # of the recipe, as [`Recipe`] takes them
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # further changes under a budget
    paper: Mapping[str, float] = field(default_factory=dict)  # the paper's figures by column, in the column's unit
    shape: Mapping[str, Any] | None = None  # whose parameters and operations are measured, see [`measure_shape`]
    # Variable that names pretrained weights, a folder or Hub id; where they cannot be had, nothing is trained.
    weights: str | None = None
    layers: int | None = None  # that the teacher must have; the arm is left out where it has fewer
    seeds: Mapping[str, int] = field(default_factory=dict)  # under a budget, with how many of the table's it is run
    compare_with: str | None = None  # the arm that it is compared with, in place of that of the table
    missing: str | None = None  # why it cannot be run at all; the paper's figures are shown
    note: str = ""  # what a reader should know

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any] | None, place: str) -> Self:
        """Reads an arm; `ReportError` names what is wrong with it."""
        place, content = f"{place}, arm {name!r}", {} if content is None else content
        check_fields(cls, content, place)
        for key in ("changes", "budgets", "paper", "seeds"):
            if not isinstance(content.get(key, {}), Mapping):
                raise ReportError(f"{place}: `{key}` must be a mapping.")
        return cls(name=name, **{"title": name, **content})

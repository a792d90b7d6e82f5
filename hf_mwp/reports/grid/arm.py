"""One row of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..report_error import ReportError, check_name


@dataclass(frozen=True)
class Arm:
    """
    A row of a table: what it changes of the recipe, and what the paper has there.

    Args:
        name (`str`): Name in the file and for `--arms`.
        title (`str`, *optional*): First cell of the row; the name by default.
        changes (`Mapping`, *optional*): Changes of the recipe, as [`Recipe`] takes them.
        budgets (`Mapping[str, Mapping]`, *optional*): Further changes under a budget.
        paper (`Mapping[str, float]`, *optional*): The paper's figures by column, in the column's unit.
        shape (`Mapping`, *optional*): Shape whose parameters and operations are measured, see [`measure_shape`].
        weights (`str`, *optional*):
            Variable that names pretrained weights, a folder or Hub id; where they cannot be had, nothing is trained.
        layers (`int`, *optional*): Layers that the teacher must have; the arm is left out where it has fewer.
        seeds (`Mapping[str, int]`, *optional*): Under a budget, with how many of the table's seeds it is run.
        compare_with (`str`, *optional*): The arm that it is compared with, in place of that of the table.
        missing (`str`, *optional*): Why it cannot be run at all; the paper's figures are shown.
        note (`str`, *optional*): What a reader should know.
    """

    name: str
    title: str = ""
    changes: Mapping[str, Any] = field(default_factory=dict)
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    paper: Mapping[str, float] = field(default_factory=dict)
    shape: Mapping[str, Any] | None = None
    weights: str | None = None
    layers: int | None = None
    seeds: Mapping[str, int] = field(default_factory=dict)
    compare_with: str | None = None
    missing: str | None = None
    note: str = ""

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any] | None, place: str) -> Arm:
        """Reads an arm; `ReportError` names what is wrong with it."""
        place = f"{place}, arm {name!r}"
        content = {} if content is None else content
        if not isinstance(content, Mapping):
            raise ReportError(f"{place} must be a mapping.")
        for key in content:
            check_name(key, [each for each in cls.__dataclass_fields__ if each != "name"], "key", place)
        for key in ("changes", "budgets", "paper", "seeds"):
            if not isinstance(content.get(key, {}), Mapping):
                raise ReportError(f"{place}: `{key}` must be a mapping.")
        return cls(name=name, **{"title": name, **content})

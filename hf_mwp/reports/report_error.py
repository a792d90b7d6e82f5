"""What can be wrong with a table or its results."""

from __future__ import annotations

from collections.abc import Iterable

from ..runs.recipes.recipe_file import unknown_name


class ReportError(ValueError):
    """A table that cannot be run as it is written, or results that are none; the message names file and place."""


def check_name(name: object, known: Iterable[object], kind: str, place: str) -> None:
    """Raises `ReportError` with a close match if `name` is not among the known ones."""
    told = unknown_name(name, known, kind)
    if told is not None:
        raise ReportError(f"{place}: {told}")

"""What can be wrong with a table or its results."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..recipes.recipe_file import unknown_name


class ReportError(ValueError):
    """A table that cannot be run as it is written, or results that are none; the message names file and place."""


def check_name(name: object, known: Iterable[object], kind: str, place: str) -> None:
    """Raises `ReportError` with a close match if `name` is not among the known ones."""
    told = unknown_name(name, known, kind)
    if told is not None:
        raise ReportError(f"{place}: {told}")


def check_fields(kind: type, content: Any, place: str) -> None:
    """Raises `ReportError` unless `content` is a mapping of fields of a dataclass, which gets its name otherwise."""
    if not isinstance(content, Mapping):
        raise ReportError(f"{place} must be a mapping.")
    for key in content:
        check_name(key, [each for each in kind.__dataclass_fields__ if each != "name"], "key", place)

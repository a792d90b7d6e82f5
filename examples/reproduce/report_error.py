"""Errors in tables and results."""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from hf_mwp.recipes.recipe_file import unknown_name


class ReportError(ValueError):
    """Error in a table's file or in a results file; the message has the file and the place in it."""


def check_name(name: object, known: Iterable[object], kind: str, place: str) -> None:
    """Raise `ReportError` with a close match if `name` is not among the known names."""
    message = unknown_name(name, known, kind)
    if message is not None:
        raise ReportError(f"{place}: {message}")


def check_fields(kind: type, content: Any, place: str) -> None:
    """Raise `ReportError` unless `content` is a mapping of fields of a dataclass without its field `name`."""
    if not isinstance(content, Mapping):
        raise ReportError(f"{place} must be a mapping.")
    for key in content:
        check_name(key, [each.name for each in fields(kind) if each.name != "name"], "key", place)

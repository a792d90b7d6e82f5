"""Typed descriptions of the fields in a JSON file, and functions that read a file by its description."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .usage_error import UsageError


REQUIRED = object()
REMEDY = "Download the folder again, or save it again."
_NAMES = {int: "an integer", float: "a number", str: "a text", bool: "true or false", dict: "an object"}


@dataclass(frozen=True)
class Field:
    """Description of a field: its JSON types, the limits of numbers, the choices of texts, the items of a list or an
    object, and the default (without one, the field must be present)."""

    types: tuple[type, ...]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    items: "Field | None" = None
    default: Any = REQUIRED

    def accepts(self, value: Any) -> bool:
        """Return whether a value of a JSON file fits the description, not counting items."""
        # Types are compared exactly, because `bool` is a subclass of `int`.
        if type(value) not in self.types:
            return False
        if type(value) in (int, float):
            return self.low <= value <= self.high
        if self.choices and isinstance(value, str):
            return value in self.choices
        return True

    @property
    def rule(self) -> str:
        """Words for what the field accepts, such as "an integer from 1 to 1,000"."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        words = [_NAMES[json_type] for json_type in self.types if json_type in _NAMES]
        if int in self.types and float in self.types:
            words.remove(_NAMES[int])
        if math.isfinite(self.low) and math.isfinite(self.high):
            words[0] += f" from {self.low:,} to {self.high:,}"
        if list in self.types:
            words.append("a list")
            if self.items is not None:
                words[-1] += f" whose items are each {self.items.rule}"
        if dict in self.types and self.items is not None:
            words[-1] = f"an object whose values are each {self.items.rule}"
        if type(None) in self.types:
            words.append("null")
        return " or ".join(words)


def damaged(fault: str) -> UsageError:
    """Return the error for a file that is damaged or does not fit the other files of its folder."""
    return UsageError(f"{fault}. {REMEDY}")


TEXT = Field((str,))
FLAG = Field((bool,))
OBJECT = Field((dict,))


def integer(low: int, high: int) -> Field:
    """Return the description of an integer from `low` to `high`."""
    return Field((int,), low, high)


def number(low: float, high: float) -> Field:
    """Return the description of a finite number from `low` to `high`."""
    return Field((float, int), low, high)


def choice(*texts: str) -> Field:
    """Return the description of one of some texts."""
    return Field((str,), choices=texts)


def list_of(item: Field) -> Field:
    """Return the description of a list whose items all have the same description."""
    return Field((list,), items=item)


def object_of(item: Field) -> Field:
    """Return the description of an object whose values all have the same description."""
    return Field((dict,), items=item)


def optional(field: Field, default: Any = None) -> Field:
    """Return the description of a field that may be missing, or null if that is the default."""
    types = field.types
    if default is None:
        types = (*types, type(None))
    return replace(field, types=types, default=default)


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a JSON file that contains an object. Raises `UsageError` if the file is missing or damaged."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise UsageError(f"{path} does not exist. Pass the folder of a saved solver.") from error
    except RecursionError as error:
        raise damaged(f"{path} is damaged (it is nested too deeply)") from error
    except (OSError, ValueError) as error:
        raise damaged(f"{path} is damaged ({error})") from error
    if not isinstance(content, dict):
        raise damaged(f"{path} is damaged (it contains no JSON object)")
    return content


def check_fields(
    content: Mapping[str, Any], description: Mapping[str, Field], path: Path, inside: str = "", closed: bool = False
) -> dict[str, Any]:
    """
    Return the fields of a description, with defaults.

    Args:
        content (`Mapping`): Object of the file.
        description (`Mapping[str, Field]`): Fields of the object. Other fields are ignored, unless `closed`.
        path (`Path`): File, for messages.
        inside (`str`, *optional*): Name of the object in the file, if it is not the whole file.
        closed (`bool`, *optional*, defaults to `False`): Whether other fields are errors.

    Raises:
        UsageError: A field is missing or does not fit. The message contains the file and the field.
    """
    unknown = [name for name in content if name not in description]
    if closed and unknown:
        raise damaged(
            f"{path} has unknown fields {unknown!r:.80}, perhaps of a newer version of hf_mwp "
            f"(known fields: {[*description]})"
        )
    fields = {}
    for name, field in description.items():
        full_name = f"{inside}.{name}" if inside else name
        if name in content:
            _check_value(content[name], field, path, full_name)
            fields[name] = content[name]
        elif field.default is REQUIRED:
            raise damaged(f"{path}: `{full_name}` is missing")
        else:
            fields[name] = field.default
    return fields


def _check_value(value: Any, field: Field, path: Path, name: str) -> None:
    if not field.accepts(value):
        raise damaged(f"{path}: `{name}` must be {field.rule}, not {value!r:.80}")
    if field.items is None:
        return
    if isinstance(value, dict):
        for key, item in value.items():
            _check_value(item, field.items, path, f"{name}.{key:.80}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_value(item, field.items, path, f"{name}[{index}]")

"""Functions that validate options, given as a dataclass or as a dictionary."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from ..usage_error import UsageError
from .option import given_options


def as_list(value: Any) -> list:
    """Return the values of an option as a list, which is empty for `None`."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def check_used(options: Any, used: Collection[str], remedy: str) -> None:
    """Raise `UsageError` if an option that is not in `used` differs from its default."""
    unused = [name for name in given_options(options) if name not in used]
    if unused:
        raise UsageError(f"`{unused[0]}` {remedy}.")


def check_given(options: Any, *names: str) -> None:
    """Raise `ValueError` if one of the options is `None`."""
    for name in names:
        if getattr(options, name) is None:
            raise ValueError(f"`{name}` must be given.")


def check_numbers(**values: Any) -> None:
    """Raise `TypeError` if a value is not a number."""
    _check_kind(values, Real, "a number")


def check_whole_numbers(**values: Any) -> None:
    """Raise `TypeError` if a value is not an integer."""
    _check_kind(values, Integral, "a whole number")


def check_at_least_one(options: Any, *names: str) -> None:
    """Raise `ValueError` if an option is below 1, `TypeError` if it is not an integer; `None` is accepted."""
    check_whole_numbers(**_given(options, names))
    _check_range(options, names, 1, math.inf, "at least 1")


def check_not_negative(options: Any, *names: str) -> None:
    """Raise `ValueError` if an option is negative or not finite, `TypeError` if not a number; `None` is accepted."""
    _check_range(options, names, 0, math.inf, "finite and not negative")


def check_positive(options: Any, *names: str) -> None:
    """Raise `ValueError` if an option is not above 0 and finite, `TypeError` if not a number; `None` is accepted."""
    _check_range(options, names, math.ulp(0.0), math.inf, "greater than 0 and finite")


def check_share(options: Any, *names: str) -> None:
    """Raise `ValueError` if an option is outside [0, 1), `TypeError` if not a number; `None` is accepted."""
    _check_range(options, names, 0, 1, "at least 0 and below 1")


def _check_kind(values: Mapping[str, Any], kind: type, told: str) -> None:
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, kind):
            raise TypeError(f"`{name}` must be {told}, got {value!r}.")


def _given(options: Any, names: Sequence[str]) -> dict[str, Any]:
    values = options if isinstance(options, dict) else {name: getattr(options, name) for name in names}
    return {name: values[name] for name in names if values[name] is not None}


def _check_range(options: Any, names: Sequence[str], low: float, high: float, told: str) -> None:
    given = _given(options, names)
    check_numbers(**given)
    for name, value in given.items():
        if not low <= value < high:
            raise ValueError(f"`{name}` must be {told}, not {value}.")

"""Checks of options that are dataclass fields."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any


def as_list(value: Any) -> list:
    """The values of an option that may be given one or several; none of one that is not given."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def check_given(options: Any, *names: str) -> None:
    """Raises `ValueError` if one of these options is not given."""
    for name in names:
        if getattr(options, name) is None:
            raise ValueError(f"`{name}` must be given.")


def check_numbers(**values: Any) -> None:
    """Raises `TypeError` if one of these values is no number."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Real):
            raise TypeError(f"`{name}` must be a number, got {value!r}.")


def check_whole_numbers(**values: Any) -> None:
    """Raises `TypeError` if one of these values is no whole number."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"`{name}` must be a whole number, got {value!r}.")


def check_at_least_one(options: Any, *names: str) -> None:
    """Raises `ValueError` if one of these options is given and below 1, `TypeError` if it is no whole number."""
    for name in names:
        value = getattr(options, name)
        if value is None:
            continue
        check_whole_numbers(**{name: value})
        if value < 1:
            raise ValueError(f"`{name}` must be at least 1, not {value}.")


def check_not_negative(options: Any, *names: str) -> None:
    """
    Raises `ValueError` if one of these options is given and below 0 or not finite, `TypeError` if it is no number.
    """
    for name in names:
        value = getattr(options, name)
        if value is None:
            continue
        check_numbers(**{name: value})
        if not 0 <= value < math.inf:
            raise ValueError(f"`{name}` must not be negative, not {value}.")


def check_share(options: Any, *names: str) -> None:
    """
    Raises `ValueError` if one of these options, shares and dropouts, is given and not at least 0 and below 1,
    `TypeError` if it is no number.
    """
    for name in names:
        value = getattr(options, name)
        if value is None:
            continue
        check_numbers(**{name: value})
        if not 0 <= value < 1:
            raise ValueError(f"`{name}` must be at least 0 and below 1, not {value}.")

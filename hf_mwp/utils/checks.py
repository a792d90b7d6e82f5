"""Functions that validate options, given as a dataclass or as a dictionary."""

import math
from collections.abc import Collection
from dataclasses import fields
from functools import partial
from importlib.util import find_spec
from typing import Any

from .checked_types import check_fields
from .option import given_options
from .usage_error import UsageError


def as_list(value: Any) -> list:
    """Return the values of an option as a list, which is empty for `None`."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def check_installed(package: str, purpose: str) -> None:
    """Raise `UsageError` if a package of the extra `cli` is not installed; `purpose` begins the message."""
    if find_spec(package) is None:
        remedy = f"Run `pip install {package}`, or `pip install 'hf-mwp[cli]'` for all packages of the commands."
        raise UsageError(f"{purpose} needs the package {package}. {remedy}")


def check_used(options: Any, used: Collection[str], remedy: str) -> None:
    """Raise `UsageError` if an option that is not in `used` differs from its default."""
    for name in given_options(options):
        if name not in used:
            raise UsageError(f"`{name}` {remedy}.")


def check_options(options: Any, library_class: type | None = None) -> None:
    """Check the types of all fields ([`~checked_types.check_fields`]). Raise `ValueError` if a field is `required` but
    missing, or has a value that is not among its `choices`."""
    check_fields(options, library_class)
    for field in fields(options):
        values = as_list(getattr(options, field.name))
        choices = field.metadata.get("choices")
        if not values and field.metadata.get("required"):
            raise ValueError(f"`{field.name}` must be given.")
        for value in values:
            if choices and value not in choices:
                raise ValueError(f"`{field.name}` must be one of {', '.join(map(str, choices))}, got {value!r}.")


def _check_range(options: Any, *names: str, rule: str, low: float = 0, high: float = math.inf) -> None:
    """Raise `ValueError` unless options, which are numbers or `None`, are `None` or in `[low, high)`."""
    for name in names:
        value = options[name] if isinstance(options, dict) else getattr(options, name)
        if value is not None and not low <= value < high:
            raise ValueError(f"`{name}` must be {rule}, not {value}.")


check_at_least_one = partial(_check_range, rule="at least 1", low=1)
check_not_negative = partial(_check_range, rule="finite and not negative")
check_positive = partial(_check_range, rule="greater than 0 and finite", low=math.ulp(0.0))
check_share = partial(_check_range, rule="at least 0 and below 1", high=1)
check_weight = partial(_check_range, rule="from 0 to 1", high=math.nextafter(1.0, 2.0))

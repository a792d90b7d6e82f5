"""Parameters that make a test slow: `make test` tests some values, `make test-slow` the others. Not a test."""

from collections.abc import Iterable
from typing import Any

import pytest


PARAMETER = type(pytest.param())  # values that already have an id or marks


def slow_except(values: Iterable[Any], *quick: Any) -> list[Any]:
    """Return the values of a parameter; the test is `slow` for all but those in `quick`."""
    values = list(values)
    unknown = [value for value in quick if value not in values]
    assert not unknown, f"no values of the parameter: {unknown}"
    parameters = []
    for value in values:
        marks = () if value in quick else (pytest.mark.slow,)
        if isinstance(value, PARAMETER):
            parameters.append(pytest.param(*value.values, marks=(*value.marks, *marks), id=value.id))
            continue
        # A tuple is the values of several parameters.
        arguments = value if isinstance(value, tuple) else (value,)
        parameters.append(pytest.param(*arguments, marks=marks))
    return parameters


def slow_after(count: int, values: Iterable[Any]) -> list[Any]:
    """Return the values of a parameter; the test is `slow` for all but the first `count`."""
    values = list(values)
    return slow_except(values, *values[:count])

"""Datasets that several stages of a command use: read once, and reported once."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from .reporter import Reporter
from .task import Task


# Results of [`once`] within [`keep_loaded`].
_results: dict[tuple, Any] | None = None


@contextlib.contextmanager
def keep_loaded() -> Iterator[None]:
    """Read and report each dataset only once inside the context, for example for the stages of a recipe."""
    global _results
    outer_results = _results
    if _results is None:
        _results = {}
    try:
        yield
    finally:
        _results = outer_results


def once(key: tuple, make: Callable[[], Any]) -> Any:
    """Return the result of `make`, which is called only once per key within [`keep_loaded`]."""
    if _results is None:
        return make()
    if key not in _results:
        _results[key] = make()
    return _results[key]


def print_data_report(task: Task, reporter: Reporter) -> None:
    """Print the report on the data, only once for the same data within [`keep_loaded`]."""
    with reporter.status("Reading the data"):
        text = str(task.load_report or f"{task.name}, split {task.scheme}")
    once(("told", text), lambda: reporter.print(text))

"""Messages and progress of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class Reporter:
    """Receiver of messages and progress of the functions in this room; this one is silent."""

    def print(self, *objects: Any, **kwargs) -> None:
        """Show a message."""

    def status(self, text: str) -> AbstractContextManager:
        """Show a text until the context is left."""
        return nullcontext()

    def progress(self, name: str = "Solving") -> Callable[[Sequence], Iterable] | None:
        """Return a progress bar over batches, as [`solve_problems`] takes it."""
        return None

    def counter(self, name: str) -> AbstractContextManager[Callable[[int, int | None], None] | None]:
        """Return the context of a function that is called with the number of items done, and of all if known."""
        return nullcontext()

    def follow(self, trainer: Any, name: str) -> AbstractContextManager:
        """Show the progress of a `Trainer` from now on, until its training ends or the context is left."""
        return nullcontext()


SILENT = Reporter()

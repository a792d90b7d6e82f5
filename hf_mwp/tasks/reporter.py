"""Interface for the messages and progress of a run."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any


class Reporter:
    """Receiver of the messages and progress of task functions; this base class shows nothing."""

    def print(self, *objects: Any, **kwargs) -> None:
        """Show a message."""

    def status(self, text: str) -> AbstractContextManager:
        """Show a text until the context ends."""
        return nullcontext()

    def progress(self, name: str = "Solving") -> Callable[[Sequence], Iterable] | None:
        """Return a function that wraps batches in a progress bar; the `progress` of [`solve_problems`]."""
        return None

    def counter(self, name: str) -> AbstractContextManager[Callable[[int, int | None], None] | None]:
        """Return a context whose function receives the number of completed items and, if known, the total."""
        return nullcontext()

    def follow(self, trainer: Any, name: str) -> AbstractContextManager:
        """Show the progress of a `Trainer` until its training or the context ends."""
        return nullcontext()


SILENT = Reporter()

"""Interface for the messages and progress of a run."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from hf_mwp.solver.solving.kept_records import ProgressBar


class Reporter:
    """Receiver of the messages and progress of task functions; this base class shows nothing."""

    def print(self, *objects: Any, **kwargs) -> None:
        """Show a message."""

    def status(self, text: str) -> AbstractContextManager:
        """Show a text until the context ends."""
        return nullcontext()

    def progress(self, name: str = "Solving") -> ProgressBar:
        """Return a function that counts batches with [`counter`][Reporter.counter]; see [`solve_problems`]."""

        def counted(batches: Sequence) -> Iterator:
            with self.counter(name) as update:
                update(0, len(batches))
                for done, batch in enumerate(batches, 1):
                    yield batch
                    update(done, len(batches))

        return counted

    def counter(self, name: str) -> AbstractContextManager[Callable[[int, int | None], None]]:
        """Return a context whose function receives the number of completed items and, if known, the total."""
        return nullcontext(lambda done, total=None: None)

    def follow(self, trainer: Any, name: str) -> AbstractContextManager:
        """Show the progress of a `Trainer` until its training or the context ends."""
        return nullcontext()


SILENT = Reporter()

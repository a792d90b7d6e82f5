"""Progress bars that count."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn


LINE_SECONDS = 60  # between two lines of progress without a terminal


@contextmanager
def counting_bar(console: Console, name: str) -> Iterator[Callable[[int, int | None], None]]:
    """Show a progress bar or, without a terminal, a line each minute; see [`~tasks.reporter.Reporter.counter`]."""
    started = time.perf_counter()
    printed = started
    is_slow = False

    def count(done: int, total: int | None = None) -> None:
        nonlocal printed, is_slow
        bar.update(task, completed=done, total=total)
        if not console.is_terminal and time.perf_counter() - printed > LINE_SECONDS:
            printed = time.perf_counter()
            is_slow = True
            print_line()

    def print_line() -> None:
        progress = f"{name}: {bar.tasks[0].completed}"
        total = bar.tasks[0].total
        if total:
            progress += f" of {total}"
        console.print(f"{progress}, {time.perf_counter() - started:.0f} s")

    with make_bar(console, disable=not console.is_terminal) as bar:
        task = bar.add_task(name, total=None)
        yield count
    # A count of less than a minute prints nothing.
    if is_slow:
        print_line()


def make_bar(console: Console, disable: bool = False) -> Progress:
    """Return a progress bar with counts and times."""
    # A description may contain the name of a dataset or file, which is no markup.
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    return Progress(*columns, TimeRemainingColumn(), console=console, transient=True, disable=disable)

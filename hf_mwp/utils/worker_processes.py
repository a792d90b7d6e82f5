"""Worker processes that apply a function to items."""

import copy
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from .usage_error import UsageError


def map_in_processes(
    load: Callable[[], Callable[[Any], Any]], items: Iterable[Any], num_processes: int
) -> Iterator[tuple[int, Any]]:
    """
    Apply a function to items in several new processes, which divide the cores of the machine. The processes end with
    the iteration, also after an error or an interrupt.

    Args:
        load (`Callable`): Picklable function that each process calls once, and that returns the function to apply,
            such as a loaded model.
        items (`Iterable`): Picklable items, of which one is read when a process has nothing to do.
        num_processes (`int`): Maximum number of processes. There are no more than items.

    Yields:
        `tuple[int, Any]`: Index of an item and the result for it, in the order of completion ([`in_order`]).

    Raises:
        UsageError: A process ended, for example because it was killed.
        Exception: The first error of a process, with its traceback as a note.
    """
    numbered_items = enumerate(items)
    first_items = list(islice(numbered_items, num_processes))
    workers: dict[Connection, Worker] = {}
    try:
        with _divided_cores(len(first_items)):
            for _ in first_items:
                worker = Worker(load)
                workers[worker.connection] = worker
        for worker, numbered_item in zip(workers.values(), first_items, strict=True):
            worker.send(numbered_item)
        busy = list(workers)
        while busy:
            for connection in wait(busy):
                numbered_result = workers[connection].receive()
                next_item = next(numbered_items, None)
                if next_item is None:
                    busy.remove(connection)
                else:
                    workers[connection].send(next_item)
                yield numbered_result
    finally:
        for worker in workers.values():
            worker.end()


def in_order(numbered_results: Iterable[tuple[int, Any]]) -> Iterator[Any]:
    """Yield results in the order of their indices."""
    waiting = {}
    next_index = 0
    for index, result in numbered_results:
        waiting[index] = result
        while next_index in waiting:
            yield waiting.pop(next_index)
            next_index += 1


class Worker:
    """Process that receives items and sends results, until it is ended."""

    def __init__(self, load: Callable[[], Callable[[Any], Any]]) -> None:
        # A forked process could inherit locks that threads of this process hold.
        context = get_context("spawn")
        self.connection, other_end = context.Pipe()
        self.process = context.Process(target=_work, args=(other_end, load), daemon=True)
        self.process.start()
        # Only the process may hold it, so that its death ends the connection.
        other_end.close()

    def send(self, numbered_item: tuple[int, Any]) -> None:
        """Send an item. If the process has ended, [`Worker.receive`] raises the error."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self.connection.send(numbered_item)

    def receive(self) -> tuple[int, Any]:
        """Wait for a result. Raises the error of the process, or `UsageError` if it has ended."""
        try:
            index, result, error = self.connection.recv()
        except (EOFError, ConnectionResetError) as end:
            self.process.join()
            raise UsageError(
                f"A worker process ended unexpectedly (exit code {self.process.exitcode}). If the system killed it, "
                "memory may be missing: use fewer processes. A script that starts processes needs `if __name__ == "
                '"__main__":`.'
            ) from end
        if error is not None:
            raise error
        return index, result

    def end(self) -> None:
        """End the process at once."""
        self.process.terminate()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, load: Callable[[], Callable[[Any], Any]]) -> None:
    # An interrupt of the terminal reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The connection breaks when the first process ends.
    with suppress(EOFError, BrokenPipeError, ConnectionResetError):
        try:
            function = load()
            while True:
                index, item = connection.recv()
                connection.send((index, function(item), None))
        except (EOFError, BrokenPipeError, ConnectionResetError):
            raise
        except Exception as error:
            error.add_note(traceback.format_exc())
            connection.send((-1, None, _picklable(error)))


def _picklable(error: Exception) -> Exception:
    """Return the error or, if it cannot be pickled and read again, one with the same text."""
    try:
        pickle.dumps(error)
        # Creates the error as reading the pickle does.
        copy.deepcopy(error)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def _divided_cores(num_processes: int) -> Iterator[None]:
    """Let processes that are started in this context have an equal share of the cores, if `OMP_NUM_THREADS` does not
    set their number of threads."""
    name = "OMP_NUM_THREADS"
    if name in os.environ or num_processes == 0:
        yield
        return
    num_cores = os.cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        num_cores = len(os.sched_getaffinity(0))
    os.environ[name] = str(max(num_cores // num_processes, 1))
    try:
        yield
    finally:
        del os.environ[name]

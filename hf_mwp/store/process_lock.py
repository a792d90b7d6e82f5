"""Lock of a folder that only one process at a time may write to."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


logger = logging.getLogger(__name__)


@contextmanager
def process_lock(path: Path) -> Iterator[None]:
    """
    Hold a file lock in the context. If another process holds it, log a warning and wait. The system releases the lock
    when the process ends, also after `kill -9`. Parent folders are created.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        logger.warning(f"Another process writes to {path.parent}. Waiting for its end.")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()

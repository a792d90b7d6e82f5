"""File lock with a description of the process that holds it."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from .files import write_whole


class ProcessLock:
    """
    File lock for processes. The file and its parent folders are created. The system releases the lock when the process
    ends, also after `kill -9`. A second file describes the process that holds the lock.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = FileLock(self.path)
        self._note = self.path.with_name(f"{self.path.name}.holder")

    def acquire(self) -> bool:
        """Try to acquire the lock without waiting, and return whether it was free."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        self._write_note()
        return True

    def release(self, remove: bool = False) -> None:
        """Release the lock. `remove` deletes its file, which is safe only if no process waits for the lock."""
        self._note.unlink(missing_ok=True)
        if remove:
            # Delete the file before another process can acquire the lock. Windows deletes the file itself.
            with suppress(OSError):
                self.path.unlink()
        self._lock.release()

    @property
    def holder(self) -> str:
        """Description of the process that holds the lock: process id, machine and time."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return f"process {note['pid']} on {note['host']}, since {note['since']}"
        except (OSError, ValueError, LookupError, TypeError):
            # The lock is acquired shortly before the note is written.
            return "another process"

    @contextmanager
    def held(self, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock in the context. If it is not free, call `waiting` with the [`holder`], then wait for it."""
        if not self.acquire():
            waiting(self.holder)
            self._lock.acquire()
            self._write_note()
        try:
            yield
        finally:
            self.release()

    def _write_note(self) -> None:
        note = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        # The lock works without the note, for example on a full disk.
        with suppress(OSError):
            write_whole(self._note, json.dumps(note))

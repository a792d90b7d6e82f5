"""Lock that one process holds, with a note that names the process."""

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
    File that one process at a time holds, made with the folders above it. The system takes it back when that process
    ends, also by `kill -9`; a note beside it says who holds it.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self._lock = FileLock(self.path)
        self._note = self.path.with_name(f"{self.path.name}.holder")

    def acquire(self) -> bool:
        """Acquire the lock if it is free; return whether it was."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            return False
        self._write_note()
        return True

    def release(self, remove: bool = False) -> None:
        """Release the lock; `remove` deletes its file, which is safe only if no process waits for it."""
        self._note.unlink(missing_ok=True)
        if remove:
            # Before it is free: nobody can have taken it. Windows takes it away by itself.
            with suppress(OSError):
                self.path.unlink()
        self._lock.release()

    @property
    def holder(self) -> str:
        """Description of the holder: process, machine, time."""
        try:
            note = json.loads(self._note.read_text(encoding="utf-8"))
            return f"process {note['pid']} on {note['host']}, since {note['since']}"
        except (OSError, ValueError, LookupError, TypeError):
            # It is held before the note is written.
            return "another process"

    @contextmanager
    def held(self, waiting: Callable[[str], None]) -> Iterator[None]:
        """Hold the lock, waiting as long as it takes; `waiting` is called with the [`holder`] if there is one."""
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
        # On a full disk the lock is as good without it.
        with suppress(OSError):
            write_whole(self._note, json.dumps(note))

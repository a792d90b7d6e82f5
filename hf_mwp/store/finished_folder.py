"""Lock and completion record for an idempotent job directory."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from ..usage_error import UsageError
from .files import read_json, write_json


logger = logging.getLogger(__name__)

# Prefix of the folder's own files. All other files belong to the job.
OWN = "stage."
RECORD, LOCK, START = "stage.json", "stage.lock", "stage.start.json"


class FinishedFolder:
    """
    Folder of a job, with a lock and a completion record. A completed job is skipped, an interrupted job resumes:
    `folder.fill(lambda: trainer.train(resume_from_checkpoint=folder.checkpoint))`.

    The `fingerprint` must change with everything on which the result depends; see [`digest_of`].
    """

    def __init__(self, path: str | Path, fingerprint: str):
        self.path, self.fingerprint = Path(path), fingerprint

    @classmethod
    def named(cls, parent: str | Path, name: str, fingerprint: str) -> FinishedFolder:
        """Return the folder `{name}-{first eight digits of the fingerprint}`, which is unique to the job."""
        return cls(Path(parent) / f"{name}-{fingerprint[:8]}", fingerprint)

    @property
    def record(self) -> dict[str, Any] | None:
        """Record of the completed job with its duration in `seconds`, or `None` if the job is not complete."""
        record = read_json(self.path / RECORD)
        return record if record is not None and record.get("fingerprint") == self.fingerprint else None

    @property
    def is_done(self) -> bool:
        """Return whether the job is complete."""
        return self.record is not None

    @property
    def metrics(self) -> dict[str, Any]:
        """Content of the folder's `metrics.json`, or an empty dictionary if the file does not exist."""
        return read_json(self.path / "metrics.json") or {}

    @property
    def checkpoint(self) -> str | None:
        """Last complete checkpoint in the folder, or `None` if there is none."""
        from .checkpoints import last_complete_checkpoint

        return last_complete_checkpoint(self.path)

    @property
    def is_begun(self) -> bool:
        """Return whether the folder contains files of the job."""
        return self.path.is_dir() and any(not each.name.startswith(OWN) for each in self.path.iterdir())

    def check_own(self) -> None:
        """Raise [`UsageError`] if the folder contains the results of a different job."""
        found = (read_json(self.path / RECORD) or {}).get("fingerprint", self.fingerprint)
        if found != self.fingerprint:
            difference = f"fingerprint {found} instead of {self.fingerprint}"
            raise UsageError(f"{self.path} has results of a different run ({difference}). Choose another folder.")

    def fill(self, work: Callable[[], Any], told: Mapping[str, Any] | None = None) -> bool:
        """
        Run `work` and write the completion record, which includes `told`. If the job is complete, nothing is run; if a
        different process is running it, wait for its end. Returns whether this call ran `work`, which should resume
        from [`checkpoint`](FinishedFolder.checkpoint).
        """
        if self.is_done:
            return False
        with process_lock(self.path / LOCK):
            if self.is_done:
                return False
            before, started = self._seconds_until(self.checkpoint), time.time()
            write_json(self.path / START, {"started": started, "seconds_before": before})
            work()
            seconds = round(before + time.time() - started, 1)
            record = {**(told or {}), "fingerprint": self.fingerprint, "seconds": seconds}
            write_json(self.path / RECORD, record)
            return True

    def _seconds_until(self, checkpoint: str | None) -> float:
        """Return the seconds that earlier starts took to reach the checkpoint from which this start resumes."""
        last = read_json(self.path / START)
        if checkpoint is None or last is None:
            return 0.0
        saved = (Path(checkpoint) / "trainer_state.json").stat().st_mtime
        # A checkpoint older than the last start is the checkpoint from which that start resumed.
        return last["seconds_before"] + max(0.0, saved - last["started"])


def digest_of(content: Any) -> str:
    """Return a digest of a value's JSON, with 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


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

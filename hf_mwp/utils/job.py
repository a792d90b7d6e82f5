"""Job: a folder with a lock and a completion record, and the inputs on which its result depends."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .checkpoints import TRAINER_STATE, last_complete_checkpoint
from .files import content_digest, read_json, write_json
from .usage_error import UsageError


logger = logging.getLogger(__name__)

# Prefix of the job's own files. All other files belong to its work.
OWN = "stage."
RECORD = "stage.json"
LOCK = "stage.lock"
START = "stage.start.json"


@dataclass(frozen=True)
class Job:
    """Work in a folder, with a lock and a completion record. A completed job is skipped, an interrupted job resumes:
    `job.run(lambda: trainer.train(resume_from_checkpoint=job.checkpoint))`. `depends_on` is a mapping of everything on
    which the result depends. Values that JSON does not support are compared as strings."""

    path: Path
    depends_on: Mapping[str, Any]

    @classmethod
    def named(cls, parent: str | Path, name: str, depends_on: Mapping[str, Any]) -> Job:
        """Return the job in the folder `{name}-{first eight digits of the fingerprint}`, which no other job uses."""
        return cls(Path(parent) / f"{name}-{digest_of(depends_on)[:8]}", depends_on)

    @cached_property
    def fingerprint(self) -> str:
        """Digest of `depends_on`."""
        return digest_of(self.depends_on)

    @property
    def record(self) -> dict[str, Any] | None:
        """Record of the completed job with its duration in `seconds`, or `None` if the job is not complete."""
        record = read_json(self.path / RECORD)
        if record is None or record.get("fingerprint") != self.fingerprint:
            return None
        return record

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
        return last_complete_checkpoint(self.path)

    @property
    def is_begun(self) -> bool:
        """Return whether the folder contains files of the job's work."""
        return self.path.is_dir() and not all(name.startswith(OWN) for name in os.listdir(self.path))

    def check_folder(self) -> None:
        """Raise [`UsageError`] if the folder contains the results of a different job."""
        record = read_json(self.path / RECORD) or {}
        fingerprint = record.get("fingerprint", self.fingerprint)
        if fingerprint != self.fingerprint:
            depends_on = json.loads(_json_of(self.depends_on))
            # Records of earlier versions have only the fingerprint.
            changes = changed_values(record.get("depends_on", {}), depends_on)
            difference = describe_changes(changes) or f"fingerprint {fingerprint} instead of {self.fingerprint}"
            raise UsageError(f"{self.path} has results of a different run ({difference}). Choose another folder.")

    def run(self, work: Callable[[], Any], details: Mapping[str, Any] | None = None) -> bool:
        """Run `work` and write the completion record with `details`. If the job is complete, nothing is run;
        if another process is running it, wait for its end. Returns whether this call ran `work`, which should resume
        from `checkpoint`."""
        if self.is_done:
            return False
        with process_lock(self.path / LOCK):
            if self.is_done:
                return False
            seconds_before = self._seconds_until(self.checkpoint)
            started = time.time()
            write_json(self.path / START, {"started": started, "seconds_before": seconds_before})
            work()
            record = {
                **(details or {}),
                "depends_on": self.depends_on,
                "fingerprint": self.fingerprint,
                "seconds": round(seconds_before + time.time() - started, 1),
            }
            write_json(self.path / RECORD, record)
            return True

    def _seconds_until(self, checkpoint: str | None) -> float:
        """Return the seconds that earlier starts took to reach the checkpoint from which this start resumes."""
        last_start = read_json(self.path / START)
        if checkpoint is None or last_start is None:
            return 0.0
        saved = (Path(checkpoint) / TRAINER_STATE).stat().st_mtime
        # A checkpoint older than the last start is the checkpoint from which that start resumed.
        return last_start["seconds_before"] + max(0.0, saved - last_start["started"])


def changed_values(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the old and new values that differ between two mappings, of the names that both have. A moved file is
    not a difference."""
    changes = {}
    for name, value in new.items():
        if name in old and not _same(old[name], value):
            changes[name] = (old[name], value)
    return changes


def describe_changes(changes: Mapping[str, tuple[Any, Any]]) -> str:
    """Return the names with their old and new values, for an error message."""
    return ", ".join(f"{name}: {old!r} -> {new!r}" for name, (old, new) in changes.items())


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(_same, old, new))
    if old == new:
        return True
    is_file = isinstance(old, str) and isinstance(new, str) and new and os.path.exists(new)
    if not is_file:
        return False
    if os.path.exists(old):
        return os.path.samefile(old, new) or content_digest(old) == content_digest(new)
    return Path(old).name == Path(new).name


def digest_of(content: Any) -> str:
    """Return a digest of a value's JSON, with 32 hexadecimal digits."""
    return hashlib.blake2b(_json_of(content).encode(errors="surrogatepass"), digest_size=16).hexdigest()


def _json_of(content: Any) -> str:
    return json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)


@contextmanager
def process_lock(path: Path) -> Iterator[None]:
    """Hold a file lock in the context. If another process holds it, log a warning and wait. The system releases the
    lock when the process ends, also after `kill -9`. Parent folders are created."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    try:
        acquired = lock.acquire(timeout=0)
    except Timeout:
        logger.warning(f"Another process writes to {path.parent}. Waiting for its end.")
        acquired = lock.acquire()
    with acquired:
        yield

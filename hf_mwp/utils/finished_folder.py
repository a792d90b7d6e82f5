"""Lock, completion record and checkpoints of an idempotent job directory."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .files import read_json, remove_folder, write_json
from .usage_error import UsageError


logger = logging.getLogger(__name__)

# Prefix of the folder's own files. All other files belong to the job.
OWN = "stage."
RECORD = "stage.json"
LOCK = "stage.lock"
START = "stage.start.json"
# Names in Transformers, whose import would be slow.
CHECKPOINT = "checkpoint"
TRAINER_STATE = "trainer_state.json"
# Each process of a distributed training writes a file with its random state to a checkpoint; see `announce_files`.
RANDOM_STATE = "rng_state_{}.pth"
ANNOUNCED = "process_files.json"


class FinishedFolder:
    """Folder of a job, with a lock and a completion record. A completed job is skipped, an interrupted job resumes:
    `folder.fill(lambda: trainer.train(resume_from_checkpoint=folder.checkpoint))`. The `fingerprint` must change with
    everything on which the result depends; see [`digest_of`]."""

    def __init__(self, path: str | Path, fingerprint: str):
        self.path = Path(path)
        self.fingerprint = fingerprint

    @classmethod
    def named(cls, parent: str | Path, name: str, fingerprint: str) -> FinishedFolder:
        """Return the folder `{name}-{first eight digits of the fingerprint}`, which is unique to the job."""
        return cls(Path(parent) / f"{name}-{fingerprint[:8]}", fingerprint)

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
        """Return whether the folder contains files of the job."""
        return self.path.is_dir() and not all(name.startswith(OWN) for name in os.listdir(self.path))

    def check_own(self) -> None:
        """Raise [`UsageError`] if the folder contains the results of a different job."""
        record = read_json(self.path / RECORD) or {}
        fingerprint = record.get("fingerprint", self.fingerprint)
        if fingerprint != self.fingerprint:
            difference = f"fingerprint {fingerprint} instead of {self.fingerprint}"
            raise UsageError(f"{self.path} has results of a different run ({difference}). Choose another folder.")

    def fill(self, work: Callable[[], Any], details: Mapping[str, Any] | None = None) -> bool:
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
            seconds = round(seconds_before + time.time() - started, 1)
            record = {**(details or {}), "fingerprint": self.fingerprint, "seconds": seconds}
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


def last_complete_checkpoint(folder: str | os.PathLike) -> str | None:
    """Return the newest complete checkpoint in a run's folder, or `None` if there is none."""
    checkpoints = _checkpoints(folder)
    for step in sorted(checkpoints, reverse=True):
        if is_complete(checkpoints[step]):
            return str(checkpoints[step])
    return None


def is_complete(checkpoint: str | os.PathLike) -> bool:
    """Return whether a checkpoint is complete: it has the trainer's state, which the main process writes last, the
    random state of each process of the training, and no file is truncated, for example by a power failure."""
    # Solving without PyTorch does not need this package.
    from safetensors import SafetensorError, safe_open

    checkpoint = Path(checkpoint)
    if not all((checkpoint / name).is_file() for name in _process_files(checkpoint)):
        return False
    try:
        json.loads((checkpoint / TRAINER_STATE).read_text(encoding="utf-8"))
        for path in checkpoint.glob("*.safetensors"):
            with safe_open(path, "pt"):
                pass
    except (OSError, ValueError, SafetensorError):
        return False
    return all(map(zipfile.is_zipfile, checkpoint.glob("*.pt*")))


def _process_files(checkpoint: Path) -> list[str]:
    """Return the names of the files that the processes of a distributed training write to a checkpoint."""
    announced = read_json(checkpoint / ANNOUNCED)
    if announced is not None:
        return list(announced.get("files", ()))
    # A checkpoint of `Trainer` does not tell the number of processes, but a file between two others must exist.
    num_processes = 0
    for path in checkpoint.glob(RANDOM_STATE.format("*")):
        rank = path.name.removeprefix("rng_state_").removesuffix(".pth")
        if rank.isdecimal():
            num_processes = max(num_processes, int(rank) + 1)
    return list(map(RANDOM_STATE.format, range(num_processes)))


def announce_files(checkpoint: str | os.PathLike, ranks: Iterable[int]) -> None:
    """Record which processes will write their random states to a checkpoint. The main process writes the trainer's
    state without waiting for them, so that the state does not show that all files are written."""
    write_json(Path(checkpoint) / ANNOUNCED, {"files": list(map(RANDOM_STATE.format, ranks))})


def invalidate_checkpoint(checkpoint: str | os.PathLike) -> None:
    """Mark a checkpoint as incomplete before it is overwritten."""
    for name in (TRAINER_STATE, ANNOUNCED):
        (Path(checkpoint) / name).unlink(missing_ok=True)


def remove_checkpoints(folder: str | os.PathLike) -> None:
    """Remove the checkpoints of a run's folder, so that the next run does not resume from them."""
    for path in _checkpoints(folder).values():
        remove_folder(path)


def _checkpoints(folder: str | os.PathLike) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, including links and broken links."""
    checkpoints = {}
    for path in Path(folder).glob(f"{CHECKPOINT}-*"):
        step = path.name.removeprefix(f"{CHECKPOINT}-")
        if step.isdecimal() and not path.is_file():
            checkpoints[int(step)] = path
    return checkpoints


def digest_of(content: Any) -> str:
    """Return a digest of a value's JSON, with 32 hexadecimal digits."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(errors="surrogatepass"), digest_size=16).hexdigest()


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

"""Lock and completion record for an idempotent job directory."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ..usage_error import UsageError
from .files import read_json, write_json
from .process_lock import ProcessLock


# What the folder keeps of itself; whatever else lies in it is the work's.
OWN = "stage."
RECORD, LOCK, START = "stage.json", "stage.lock", "stage.start.json"


class FinishedFolder:
    """
    Folder of a job, with a lock, a completion record and the job's fingerprint in its name. A completed job is not
    done again, an interrupted one resumes. A loop over models has one folder for each model that it makes:

    ```python
    folder = FinishedFolder.named("runs", "teacher", digest_of({"sparsity": 0.5, "seed": 42}))
    folder.fill(lambda: trainer.train(resume_from_checkpoint=folder.checkpoint))
    ```

    The `fingerprint` changes with everything that the result depends on; see [`digest_of`].
    """

    def __init__(self, path: str | Path, fingerprint: str):
        self.path, self.fingerprint = Path(path), fingerprint

    @classmethod
    def named(cls, parent: str | Path, name: str, fingerprint: str) -> FinishedFolder:
        """Return the folder `{name}-{first eight digits of the fingerprint}`, which other work does not share."""
        return cls(Path(parent) / f"{name}-{fingerprint[:8]}", fingerprint)

    @property
    def record(self) -> dict[str, Any] | None:
        """Record of the finished work, with its `seconds`; `None` if it is not done."""
        record = read_json(self.path / RECORD)
        return record if record is not None and record.get("fingerprint") == self.fingerprint else None

    @property
    def is_done(self) -> bool:
        """Return whether the work is finished."""
        return self.record is not None

    @property
    def metrics(self) -> dict[str, Any]:
        """Content of the folder's `metrics.json`; empty without one."""
        path = self.path / "metrics.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    @property
    def checkpoint(self) -> str | None:
        """Last complete checkpoint of an interrupted training."""
        from .checkpoints import last_complete_checkpoint

        return last_complete_checkpoint(self.path)

    @property
    def is_begun(self) -> bool:
        """Return whether an interrupted start has left files in the folder."""
        return self.path.is_dir() and any(not each.name.startswith(OWN) for each in self.path.iterdir())

    def check_own(self) -> None:
        """Raise [`UsageError`] if the folder contains the results of other work."""
        found = (read_json(self.path / RECORD) or {}).get("fingerprint", self.fingerprint)
        if found != self.fingerprint:
            raise UsageError(
                f"{self.path} holds finished work of another run (its fingerprint is {found}, not "
                f"{self.fingerprint}): move it away, or choose another folder."
            )

    def fill(self, work: Callable[[], Any], told: Mapping[str, Any] | None = None) -> bool:
        """
        Do the work, from [`checkpoint`](FinishedFolder.checkpoint) on if there is one, unless it is done; return
        whether this call did it. If another process is doing it, wait for that one. The record holds `told` as well.
        """
        if self.is_done:
            return False
        with ProcessLock(self.path / LOCK).held(self._tell_waiting):
            if self.is_done:
                return False
            before, started = self._seconds_until(self.checkpoint), time.time()
            write_json(self.path / START, {"started": started, "seconds_before": before})
            work()
            seconds = round(before + time.time() - started, 1)
            record = {**(told or {}), "fingerprint": self.fingerprint, "seconds": seconds}
            write_json(self.path / RECORD, record)
            return True

    def _tell_waiting(self, holder: str) -> None:
        logging.getLogger(__name__).warning("another run is busy with %s: waiting for %s", self.path, holder)

    def _seconds_until(self, checkpoint: str | None) -> float:
        """Return the seconds that earlier starts took to reach the checkpoint from which this one resumes."""
        last = read_json(self.path / START)
        if checkpoint is None or last is None:
            return 0.0
        saved = (Path(checkpoint) / "trainer_state.json").stat().st_mtime
        # One that is older than the last start is the one that this start went on from, and there is none after it.
        return last["seconds_before"] + max(0.0, saved - last["started"])


def digest_of(content: Any) -> str:
    """Return a fingerprint of 32 hexadecimal digits of a value's JSON."""
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

"""The folder that a command fills."""

from __future__ import annotations

from pathlib import Path

from ..disk_full_error import DiskFullError, means_full_disk
from ..process_lock import ProcessLock
from ..usage_error import UsageError
from .main_process import is_main_process


LOCK = "run.lock"
RECORDS = ("run_config.yaml", "run.json", "data.json", "metrics.json", "run.log", "learning_curve.png")
MODEL_FILES = ("config.json", "*.safetensors", "*.safetensors.index.json", "pytorch_model*.bin*")


class OutputFolder:
    """
    The folder that a command fills: held by one run at a time, until the context is left. A full disk is named there.

    Of a distributed run the first process holds it; a process that is killed leaves it free.

    Args:
        path (`str` or `Path`): The folder; made if it is not there, and taken away again if nothing is written to it.

    Raises:
        UsageError: the path is a file, or another run writes to the folder.
    """

    def __init__(self, path: str | Path):
        self.path = Path(path)
        self.writes = is_main_process()
        check_output_folder(self.path)
        self._is_new = not self.path.exists()
        self._lock = ProcessLock(self.path / LOCK) if self.writes else None
        if self._lock is not None and not self._lock.acquire():
            holder, self._lock = self._lock.holder, None
            raise UsageError(
                f"Another run writes to {self.path} ({holder}): wait for its end, or choose another output folder."
            )

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace) -> None:
        self.close()
        if isinstance(error, DiskFullError):
            raise UsageError(str(error)) from error
        if not isinstance(error, UsageError) and means_full_disk(error):
            remedy = "Make room, or choose another output folder, and start again."
            raise UsageError(str(DiskFullError(self.path, remedy))) from error

    def close(self) -> None:
        """Lets others write to the folder; more than once does no harm."""
        if self._lock is None:
            return
        lock, self._lock = self._lock, None
        lock.release(remove=True)
        if self._is_new and not any(self.path.iterdir()):
            self.path.rmdir()

    def check_unused(self, overwrite: bool, files: tuple[str, ...] = MODEL_FILES) -> None:
        """
        Looks whether finished work would be written over.

        Args:
            overwrite (`bool`): Whether that is wanted.
            files (`tuple[str, ...]`, *optional*): Patterns of the names that finished work has; a model's by default.

        Raises:
            UsageError: it would, and is not wanted.
        """
        found = [path.name for pattern in files for path in sorted(self.path.glob(pattern))]
        if found and not overwrite:
            raise UsageError(
                f"{self.path} has finished work of an earlier run ({', '.join(found[:2])}): replace it with "
                "--overwrite, or choose another --output_dir."
            )


def check_output_folder(path: str | Path) -> None:
    """Raises `UsageError` if a file has the name of the folder, or of one above it."""
    there = next((place for place in (Path(path), *Path(path).parents) if place.exists()), None)
    if there is not None and not there.is_dir():
        raise UsageError(f"{there} is a file; choose another output folder.")


def describe_contents(path: Path, *made: str) -> str:
    """What a run has left in its folder: what it `made`, and the records that are there."""
    return f"{path} has {', '.join((*made, *(name for name in RECORDS if (path / name).is_file())))}"

"""Checkpoints in the output folder of a run: the newest complete one, and their removal."""

import json
import os
import zipfile
from collections.abc import Iterable
from pathlib import Path

from .files import read_json, remove_folder, write_json


# Names in Transformers, whose import would be slow.
CHECKPOINT = "checkpoint"
TRAINER_STATE = "trainer_state.json"
# Each process of a distributed training writes a file with its random state to a checkpoint; see `announce_files`.
RANDOM_STATE = "rng_state_{}.pth"
ANNOUNCED = "process_files.json"


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

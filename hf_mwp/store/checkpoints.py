"""Search for complete checkpoints from which a run can resume."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

from safetensors import SafetensorError, safe_open
from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from .files import remove_folder


def last_complete_checkpoint(folder: str | os.PathLike) -> str | None:
    """Return the newest complete checkpoint in a run's folder, or `None` if there is none."""
    steps = _checkpoints(folder)
    return next((str(steps[step]) for step in sorted(steps, reverse=True) if is_complete(steps[step])), None)


def is_complete(checkpoint: str | os.PathLike) -> bool:
    """
    Return whether a checkpoint is complete: it has the trainer's state, which `Trainer` writes last, and no file is
    truncated, for example by a power failure.
    """
    checkpoint = Path(checkpoint)
    try:
        json.loads((checkpoint / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
        for path in checkpoint.glob("*.safetensors"):
            with safe_open(path, "pt"):
                pass
    except (OSError, ValueError, SafetensorError):
        return False
    return all(zipfile.is_zipfile(path) for path in checkpoint.glob("*.pt"))


def forget_state(checkpoint: str | os.PathLike) -> None:
    """Mark a checkpoint as incomplete before it is overwritten."""
    (Path(checkpoint) / TRAINER_STATE_NAME).unlink(missing_ok=True)


def remove_checkpoints(folder: str | os.PathLike) -> None:
    """Remove the checkpoints of a run's folder, so that the next run does not resume from them."""
    for path in _checkpoints(folder).values():
        remove_folder(path)


def _checkpoints(folder: str | os.PathLike) -> dict[int, Path]:
    """Return the checkpoints in a folder by step, including links and broken links."""
    found = Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*")
    paths = {path.name.removeprefix(f"{PREFIX_CHECKPOINT_DIR}-"): path for path in found}
    return {int(step): path for step, path in paths.items() if step.isdecimal() and not path.is_file()}

"""Checkpoints that a run can go on from."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

from transformers.trainer import TRAINER_STATE_NAME
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR


def last_complete_checkpoint(folder: str | os.PathLike) -> str | None:
    """
    The newest checkpoint in a run's folder that was written to its end, or `None`.

    `Trainer` writes its state after everything else: a checkpoint in which that file is missing or cut off belongs to
    a run that was killed while it saved, and the one before it is taken.

    Args:
        folder (`str` or `PathLike`): Output folder of a trainer.
    """
    steps = _checkpoints(folder)
    for step in sorted(steps, reverse=True):
        try:
            json.loads((steps[step] / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return str(steps[step])
    return None


def remove_checkpoints(folder: str | os.PathLike) -> None:
    """Removes the checkpoints in a run's folder, so that none of an earlier run is taken for one of the next."""
    for path in _checkpoints(folder).values():
        shutil.rmtree(path)


def _checkpoints(folder: str | os.PathLike) -> dict[int, Path]:
    """The checkpoints of a folder by their steps."""
    paths = [path for path in Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*") if path.is_dir()]
    matches = {path: re.fullmatch(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)", path.name) for path in paths}
    return {int(match[1]): path for path, match in matches.items() if match}

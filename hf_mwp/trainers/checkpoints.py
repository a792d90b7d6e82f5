"""Checkpoints that a run can go on from."""

from __future__ import annotations

import json
import os
import re
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
    steps = {}
    for path in Path(folder).glob(f"{PREFIX_CHECKPOINT_DIR}-*"):
        if match := re.fullmatch(rf"{PREFIX_CHECKPOINT_DIR}-(\d+)", path.name):
            steps[int(match[1])] = path
    for step in sorted(steps, reverse=True):
        try:
            json.loads((steps[step] / TRAINER_STATE_NAME).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
        return str(steps[step])
    return None

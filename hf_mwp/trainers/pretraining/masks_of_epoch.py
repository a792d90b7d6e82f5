"""Masks that change from epoch to epoch."""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback


class MasksOfEpoch(TrainerCallback):
    """Tells a collator the epoch, before its batches are made."""

    def __init__(self, collator: Any) -> None:
        self.collator = collator

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.collator.epoch = int(state.epoch or 0)


__all__ = ["MasksOfEpoch"]

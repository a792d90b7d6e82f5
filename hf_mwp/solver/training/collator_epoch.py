"""Callback for collators whose random choices depend on the epoch."""

from typing import Any

from transformers import TrainerCallback


class CollatorEpoch(TrainerCallback):
    """Callback that sets the attribute `epoch` of a collator, on which its random choices depend, so that a resumed
    training repeats them."""

    def __init__(self, collator: Any) -> None:
        self.collator = collator

    def on_epoch_begin(self, args, state, control, **kwargs):
        """Set the epoch of the collator."""
        self.collator.epoch = int(state.epoch or 0)

"""Losses of a training that are NaN or infinite."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


TOTAL = "loss"
NEVER = torch.iinfo(torch.int64).max


class NonFiniteLosses:
    """
    Record of the first step at which each part of a training loss was NaN or infinite. It stays on the device of the
    losses; only `check` waits for the device.
    """

    def __init__(self) -> None:
        # By name, the first step, and whether the loss of any step was finite.
        self._noted: dict[str, tuple[Tensor, Tensor]] = {}

    def note(self, losses: Mapping[str, Tensor], step: int) -> None:
        """Add the losses of a step by name; the sum of all parts is named `"loss"`."""
        for name, loss in losses.items():
            finite = loss.detach().isfinite().all()
            never = torch.full_like(finite, NEVER, dtype=torch.int64), torch.zeros_like(finite)
            first, was_finite = self._noted.get(name, never)
            self._noted[name] = first.where(finite, first.clamp(max=step)), was_finite | finite

    def check(self, gather: Callable[[Tensor], Tensor] = torch.clone, are_skipped: bool = False) -> None:
        """
        Raise `ValueError` if a recorded loss was NaN or infinite, and begin a new record.

        Args:
            gather (`Callable`, *optional*): Joins tensors of all processes along their first dimension.
            are_skipped (`bool`, *optional*, defaults to `False`):
                A gradient scaler (fp16) skips the steps of such losses, which then do harm only if none was finite.
        """
        if not self._noted:
            return
        names = list(self._noted)
        noted = torch.stack([torch.stack([first, finite.long()]) for first, finite in self._noted.values()])
        self._noted = {}
        first, finite = gather(noted[None]).unbind(-1)
        if are_skipped:
            first = first.masked_fill(finite.bool(), NEVER)
        steps = dict(zip(names, first.amin(0).tolist(), strict=True))
        step = min(steps.values())
        if step != NEVER:
            parts = [name for name in names if steps[name] == step]
            told = ", ".join(f"`{name}`" for name in parts if name != TOTAL or parts == [TOTAL])
            raise ValueError(
                f"The training loss is NaN or infinite: {told} at step {step}. Resume from an earlier checkpoint with "
                "a lower `learning_rate`, train in bf16 or fp32 instead of fp16, or check data and weights."
            )

"""Detection of NaN and infinite training losses."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


TOTAL = "loss"
NEVER = torch.iinfo(torch.int64).max


class NonFiniteLosses:
    """
    Record of the first step at which each part of a training loss was NaN or infinite. It is kept on the device of
    the losses; only `check` synchronises.
    """

    def __init__(self) -> None:
        # Name -> first step with a non-finite loss, and whether the loss was finite at any step.
        self._noted: dict[str, tuple[Tensor, Tensor]] = {}

    def note(self, losses: Mapping[str, Tensor], step: int) -> None:
        """Record the losses of a step by name; the total is named `"loss"`."""
        for name, loss in losses.items():
            finite = loss.detach().isfinite().all()
            never = torch.full_like(finite, NEVER, dtype=torch.int64), torch.zeros_like(finite)
            first, was_finite = self._noted.get(name, never)
            self._noted[name] = first.where(finite, first.clamp(max=step)), was_finite | finite

    def check(self, gather: Callable[[Tensor], Tensor] = torch.clone, are_skipped: bool = False) -> None:
        """
        Clear the record, and raise `ValueError` if a recorded loss was NaN or infinite.

        Args:
            gather (`Callable`, *optional*): Concatenates the tensors of all processes along the first dimension.
            are_skipped (`bool`, *optional*, defaults to `False`):
                Whether a gradient scaler (fp16) skips steps with such losses. If so, raise only if a loss was never
                finite.
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
                "a lower `learning_rate`, use bf16 or fp32 instead of fp16, or check data and weights."
            )

"""Detection of NaN and infinite training losses."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor


TOTAL = "loss"
NEVER = torch.iinfo(torch.int64).max


class NonFiniteLosses:
    """First step at which each part of a training loss was NaN or infinite. Only `check` synchronises the device."""

    def __init__(self) -> None:
        self._first_steps: dict[str, Tensor] = {}

    def note(self, losses: Mapping[str, Tensor], step: int) -> None:
        """Record the losses of a step by name; the total is named `"loss"`."""
        for name, loss in losses.items():
            finite = loss.detach().isfinite().all()
            first = self._first_steps.get(name, torch.full_like(finite, NEVER, dtype=torch.int64))
            self._first_steps[name] = first.where(finite, first.clamp(max=step))

    def check(self, gather: Callable[[Tensor], Tensor] = torch.clone) -> None:
        """Clear the record. Raises `ValueError` if a loss was not finite. `gather` joins the rows of all processes."""
        if not self._first_steps:
            return
        names = list(self._first_steps)
        first_steps = torch.stack(list(self._first_steps.values()))
        self._first_steps = {}
        # The first step of each part in any process.
        steps = gather(first_steps[None]).amin(0).tolist()
        step = min(steps)
        if step != NEVER:
            parts = [name for name, first_step in zip(names, steps, strict=True) if first_step == step]
            if len(parts) > 1 and TOTAL in parts:
                parts.remove(TOTAL)
            bad = ", ".join(f"`{name}`" for name in parts)
            raise ValueError(
                f"The training loss is NaN or infinite: {bad} at step {step}. Resume from an earlier checkpoint with "
                "a lower `learning_rate`, use bf16 or fp32 instead of fp16, or check data and weights."
            )

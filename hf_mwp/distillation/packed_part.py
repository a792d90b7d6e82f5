"""Numbers of a batch on the way to rows, in fp16 or, where one needs it, in fp32."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch


class PackedPart:
    """
    One kind of numbers of a batch, rows one after the other.

    Args:
        name (`str`): For error messages.
        values (`torch.Tensor`): `(tokens or positions of all rows, width)`.
        counts (`Sequence[int]`): Tokens or positions of each row.
        may_forbid (`bool`): Whether `-inf` is a number like any other.

    Attributes:
        wide_rows (`set[int]`): Rows with a number beyond the range of fp16.

    Raises:
        ValueError: a number is NaN or infinite.
    """

    def __init__(self, name: str, values: torch.Tensor, counts: Sequence[int], may_forbid: bool = False) -> None:
        self.counts = list(counts)
        self.stops = np.cumsum(self.counts)
        self.full = values.float()
        half = self.full.half()
        odd = ~half.isfinite()
        self.wide_rows: set[int] = set()
        if may_forbid:
            odd &= ~self.full.isneginf()
        if odd.any():
            if not self.full[odd].isfinite().all():
                raise ValueError(
                    f"The teacher's {name} hold numbers that are NaN or infinite: there is nothing to learn from it. "
                    "Look at its weights, or run it in fp32."
                )
            places = odd.any(-1).nonzero().flatten().cpu().numpy()
            self.wide_rows = set(np.searchsorted(self.stops, places, side="right").tolist())
        self.half = half.cpu().numpy()

    def row(self, row: int, wide: bool) -> np.ndarray:
        """The numbers of a row, fp16 or fp32."""
        here = slice(self.stops[row] - self.counts[row], self.stops[row])
        return self.full[here].cpu().numpy() if wide else self.half[here]


__all__ = ["PackedPart"]

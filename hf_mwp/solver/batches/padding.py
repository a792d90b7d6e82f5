"""Function that pads rows of token ids and labels."""

from collections.abc import Sequence

import torch


def pad_rows(rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
    """Return an int64 tensor `(rows, longest)` of rows with different lengths."""
    longest = max(map(len, rows), default=0)
    padded = [[*row, *[padding] * (longest - len(row))] for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), longest)

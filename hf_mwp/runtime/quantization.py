"""Weights in eight bits."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .weights import SCALE


MIN_SIZE = 4096
"""Elements of the smallest matrix that is quantized; smaller tensors save nothing."""


def quantize_int8(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Round matrices to int8 with a scale for each row, whose largest element becomes 127 or -127, and other tensors
    to float16. [`~runtime.weights.Weights`] reads both.

    Args:
        tensors (`Mapping[str, np.ndarray]`): Weights by name.

    Returns:
        `dict[str, np.ndarray]`: the tensors, and for each matrix `name` its scales `(rows,)` as `name.scale`.
    """
    found: dict[str, np.ndarray] = {}
    for name, values in tensors.items():
        if values.ndim != 2 or values.size < MIN_SIZE:
            found[name] = values.astype(np.float16)
            continue
        values = values.astype(np.float32)
        # Divide by the scale as it is stored, so that rounding the scale adds no error.
        scale = np.maximum(np.abs(values).max(1) / 127, 1e-7).astype(np.float16)
        found[name] = np.clip(np.rint(values / scale.astype(np.float32)[:, None]), -127, 127).astype(np.int8)
        found[name + SCALE] = scale
    return found

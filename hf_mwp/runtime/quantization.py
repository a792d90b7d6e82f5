"""Quantization of weights to int8."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .weights import SCALE


MIN_SIZE = 4096
"""Minimum number of elements of a quantized matrix; quantizing smaller matrices saves no space."""


def quantize_int8(tensors: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Round matrices to int8 and other tensors to float16. Each matrix row has a scale that maps the largest absolute
    value to 127. [`~runtime.weights.Weights`] reads both types.

    Args:
        tensors (`Mapping[str, np.ndarray]`): Weights by name.

    Returns:
        `dict[str, np.ndarray]`: The rounded tensors, and the scales `(rows,)` of each matrix `name` as `name.scale`.
    """
    found: dict[str, np.ndarray] = {}
    for name, values in tensors.items():
        if values.ndim != 2 or values.size < MIN_SIZE:
            found[name] = values.astype(np.float16)
            continue
        values = values.astype(np.float32)
        # Divide by the scale in its stored precision, so that rounding the scale adds no error.
        scale = np.maximum(np.abs(values).max(1) / 127, 1e-7).astype(np.float16)
        found[name] = np.clip(np.rint(values / scale.astype(np.float32)[:, None]), -127, 127).astype(np.int8)
        found[name + SCALE] = scale
    return found

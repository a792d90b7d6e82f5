"""Checks that a teacher's outputs can be cached."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ....models.fingerprints import row_key
from .output_layout import INDICES


Row = Mapping[str, np.ndarray]

OFF = "set `cache_teacher_outputs=False`"

# Largest relative distance that counts as rounding. It is 3e-4 for fp16 storage, and 1e-2 for a bf16 teacher and a row
# in different batches. Dropout, or attention to padding, causes tens of per cent. A row with smaller values than the
# other rows, as in a regression, is compared relative to the other rows.
TOLERANCE = 2e-2


def random_state_kept() -> AbstractContextManager[None]:
    """Return a context at whose end the random generators of torch are restored."""
    return torch.random.fork_rng([torch.cuda.current_device()] if torch.cuda.is_available() else [])


def check_repeatable(
    keys: Sequence[bytes], features: list[Any], collator: Callable[[list], Mapping[str, Any]]
) -> None:
    """Raise `ValueError` unless rows, read a second time, have the same keys and are always collated alike."""
    if list(keys) != [row_key(feature) for feature in features]:
        raise ValueError(
            "The dataset returns different rows when it is read again (a random transform?), so the teacher's "
            f"outputs cannot be cached. Apply the transform once, beforehand (`dataset.map`), or {OFF}."
        )
    first, second = collator(features), collator(features)
    for name, value in first.items():
        if isinstance(value, Tensor) and not torch.equal(value, second[name]):
            raise ValueError(
                f"The collator returns a different {name!r} for the same rows each time, so the teacher's outputs "
                "cannot be cached. Mask tokens once, beforehand, and save the result in the rows (`dataset.map` with "
                f"the masking collator), or {OFF}."
            )


def check_equal(expected: Sequence[Row], got: Sequence[Row], usual: Sequence[Row], fault: str) -> None:
    """Raise `ValueError` with the given `fault` unless packed rows agree, relative to the size of the `usual` rows."""
    for name in sorted(expected[0].keys() - {INDICES}):
        ours, theirs, others = (
            np.concatenate([row[name].ravel().astype(np.float32) for row in rows]) for rows in (expected, got, usual)
        )
        if ours.shape == theirs.shape and np.array_equal(np.isneginf(ours), np.isneginf(theirs)):
            distance = _rms((ours - theirs)[np.isfinite(ours)])
            if distance <= TOLERANCE * max(map(_rms, (ours, others))):
                continue
        raise ValueError(
            f"The teacher's outputs {fault}, so its {name} cannot be cached. Correct the teacher, or {OFF}."
        )


def _rms(values: np.ndarray) -> float:
    values = values[np.isfinite(values)]
    return float(np.sqrt(np.square(values).mean())) if len(values) else 0.0

"""Batches of texts of similar length, which need little padding."""

from collections.abc import Sequence


BATCHES_PER_BLOCK = 8
"""Number of batches that are read before they are sorted by length, where not all texts are known."""


def batches_by_length(lengths: Sequence[int], batch_size: int | None) -> list[list[int]]:
    """
    Return the indices of `lengths` in batches of `batch_size`, longest texts first, so that missing memory shows at
    once. Texts of equal length keep their order. With `batch_size=None`, there is one batch in the order of `lengths`.
    """
    indices = list(range(len(lengths)))
    if batch_size is None:
        return [indices] if indices else []
    indices.sort(key=lengths.__getitem__, reverse=True)
    return [indices[start : start + batch_size] for start in range(0, len(indices), batch_size)]

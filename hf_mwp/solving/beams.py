"""The trees of a search as expressions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ..expressions import Expression, ExpressionError


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor


def read_beam(trees: Iterable[tuple[Sequence[int], float]], processor: MwpProcessor) -> list[tuple[Expression, float]]:
    """
    Expressions over slots and their log probabilities.

    Args:
        trees (`Iterable[tuple[Sequence[int], float]]`): Prefix ids, negative ones being padding, and log probabilities
            of one problem's trees, best first. What was not finished has a log probability of minus infinity.
        processor ([`MwpProcessor`]): Reads the ids.

    Returns:
        `list[tuple[Expression, float]]`: of the finished ones.
    """
    found = []
    for ids, log_probability in trees:
        if math.isfinite(log_probability):
            try:
                found.append((processor.decode([symbol for symbol in ids if symbol >= 0]), log_probability))
            except ExpressionError:
                continue
    return found

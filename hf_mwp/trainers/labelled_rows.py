"""Labels of rows, looked for before the rows are evaluated."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral
from typing import Any

import torch
from transformers.trainer_utils import has_length


def has_labels(rows: Any, names: Sequence[str], collate: Callable[[list], Mapping[str, Any]], classes: bool) -> bool:
    """
    Return whether all rows have labels, or get them when they are collated; `True` for what can only be read in order.

    Args:
        rows (`Any`): Data set or list; of another data set than a list or a `datasets.Dataset` only the first row is
            looked at.
        names (`Sequence[str]`): Names that labels may have in a row.
        collate (`Callable`): Makes a batch of a list of rows.
        classes (`bool`): Whether whole numbers are classes, of which -1 is none.
    """
    if isinstance(rows, str) or not has_length(rows) or not len(rows):
        return True
    labels = _labels(rows, names)
    if all(label is None for label in labels):
        return _makes_labels(collate, [rows[index] for index in range(min(2, len(rows)))], names)
    return not any(label is None or (classes and isinstance(label, Integral) and label == -1) for label in labels)


def _labels(rows: Any, names: Sequence[str]) -> list:
    """The label of each row, or of the first one where reading all may take long."""
    if isinstance(rows, list):
        return [_label(row, names) for row in rows]
    features = getattr(rows, "features", None) or {}
    name = next((name for name in names if name in features), None)
    # Lists of labels, as of tokens, are in every row or in none.
    return rows[name][:] if hasattr(features.get(name), "dtype") else [_label(rows[0], names)]


def _label(row: Any, names: Sequence[str]) -> Any:
    there = (row.get(name) for name in names) if isinstance(row, Mapping) else ()
    return next((label for label in there if label is not None), None)


def _makes_labels(collate: Callable[[list], Mapping[str, Any]], rows: list, names: Sequence[str]) -> bool:
    bare = [
        {name: value for name, value in row.items() if name not in names} if isinstance(row, Mapping) else row
        for row in rows
    ]
    try:
        with torch.random.fork_rng(devices=[]):
            batch = collate(bare)
    except KeyError as error:
        if error.args[:1] and error.args[0] in names:
            return False
        raise
    return any(batch.get(name) is not None for name in names)

"""Functions that divide the rows of a dataset into splits."""

import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import ProblemError

from .record import Rows
from .schema import problem_from_row


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Hold out a random share of the rows, at least one but not all, and return training and validation rows."""
    size = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    held_out = set(random.Random(0).sample(range(len(rows)), max(size, 0)))
    training = [row for index, row in enumerate(rows) if index not in held_out]
    return training, [rows[index] for index in sorted(held_out)]


def split_by_fold(rows: Iterable[dict[str, Any]], fold: int | None) -> dict[str, Rows]:
    """Split rows into the test fold `fold` and all other folds for training. Rows without a fold are left out."""
    splits: dict[str, Rows] = {"train": [], "test": []}
    for row in rows:
        if row["fold"] == fold:
            splits["test"].append(row)
        elif row["fold"] >= 0:
            splits["train"].append(row)
    return splits


def split_by_name(rows: Iterable[dict[str, Any]], names: Iterable[str]) -> dict[str, Rows]:
    """Assign each row to the split with the corresponding name in `names`. Empty splits are left out."""
    splits: dict[str, Rows] = {"train": [], "validation": [], "test": []}
    for row, name in zip(rows, names, strict=True):
        splits[name].append(row)
    return {name: split_rows for name, split_rows in splits.items() if split_rows}


def split_by_lists(rows: Rows, keys: Sequence, validation: Iterable, test: Iterable) -> dict[str, Rows]:
    """Assign rows whose key is in `validation` or `test` to these splits, and all other rows to the training split."""
    names = dict.fromkeys(validation, "validation") | dict.fromkeys(test, "test")
    return split_by_name(rows, [names.get(key, "train") for key in keys])


def split_by_complexity(rows: Iterable[dict[str, Any]], shares: Mapping[str, int]) -> dict[str, Rows]:
    """Split rows so that the splits have the same `shares` (`{"train": 8, "test": 2}`) of each level of
    `Expression.complexity()` and of the problems without a valid equation, chosen by a hash of the ids. The scheme
    follows section 4.1 of Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge
    Distillation", whose own split is not published."""
    rows = list(rows)
    levels: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        try:
            level = problem_from_row(row).expression.complexity()
        except (ExpressionError, ProblemError, AttributeError):
            level = "unknown"
        levels.setdefault(level, []).append(index)
    bounds = list(accumulate(shares.values()))
    names = [""] * len(rows)
    for members in levels.values():
        members.sort(key=lambda index: _digest(rows[index]["id"]))
        start = 0
        for name, bound in zip(shares, bounds, strict=True):
            end = round(len(members) * bound / bounds[-1])
            for index in members[start:end]:
                names[index] = name
            start = end
    return split_by_name(rows, names)


def hash_bucket(name: str) -> int:
    """Return a hash of `name` from 0 to 9, to assign names to splits."""
    return int.from_bytes(_digest(name)) % 10


def _digest(name: str) -> bytes:
    return blake2b(name.encode(), digest_size=8).digest()

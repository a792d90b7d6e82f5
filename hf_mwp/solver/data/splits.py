"""Functions that divide the rows of a dataset into splits."""

import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import ProblemError

from .schema import Rows, problem_from_row


def hold_out(rows: Rows, fraction: float) -> tuple[Rows, Rows]:
    """Hold out a random share of the rows, at least one but not all, and return training and validation rows."""
    count = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    chosen = set(random.Random(0).sample(range(len(rows)), max(count, 0)))
    return [row for place, row in enumerate(rows) if place not in chosen], [rows[place] for place in sorted(chosen)]


def split_by_fold(rows: Iterable[dict[str, Any]], fold: int | None) -> dict[str, Rows]:
    """Split rows into the test fold `fold` and all other folds for training. Rows without a fold are left out."""
    splits: dict[str, Rows] = {"train": [], "test": []}
    for row in rows:
        if row["fold"] >= 0:
            splits["test" if row["fold"] == fold else "train"].append(row)
    return splits


def split_by_name(rows: Iterable[dict[str, Any]], names: Iterable[str]) -> dict[str, Rows]:
    """Assign each row to the split with the corresponding name in `names`. Empty splits are left out."""
    splits: dict[str, Rows] = {"train": [], "validation": [], "test": []}
    for row, name in zip(rows, names, strict=True):
        splits[name].append(row)
    return {name: part for name, part in splits.items() if part}


def split_by_lists(rows: Rows, keys: Sequence, validation: Iterable, test: Iterable) -> dict[str, Rows]:
    """Assign rows whose key is in `validation` or `test` to these splits, and all other rows to the training split."""
    names = dict.fromkeys(validation, "validation") | dict.fromkeys(test, "test")
    return split_by_name(rows, (names.get(key, "train") for key in keys))


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
    bounds, total = list(accumulate(shares.values())), sum(shares.values())
    names = [""] * len(rows)
    for members in levels.values():
        members.sort(key=lambda index: blake2b(rows[index]["id"].encode(), digest_size=8).digest())
        ends = [round(len(members) * bound / total) for bound in bounds]
        for name, start, end in zip(shares, [0, *ends], ends, strict=False):
            for index in members[start:end]:
                names[index] = name
    return split_by_name(rows, names)


def hash_bucket(name: str) -> int:
    """Return a hash of `name` from 0 to 9, to assign names to splits."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % 10

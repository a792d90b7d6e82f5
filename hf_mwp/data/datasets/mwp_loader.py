"""Base class of dataset loaders, and functions that split rows."""

import random
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import Any, ClassVar

from ...expressions import ExpressionError
from ...problems import ProblemError
from ..reading.file_contents import RecordReader
from ..reading.schema import Record, make_row, problem_from_row


Rows = list[dict[str, Any]]

PARTS = {"train": "train", "validation": "valid", "test": "test"}  # Usual file names of the splits.
MADE = ("id", "text", "equation", "answer")  # Columns in which a problem made from another one differs from it.


class MwpLoader:
    """Base class of dataset loaders. To add a dataset, derive a class in `chinese.py` or `english.py` and add it to
    `LOADERS` there.

    Class attributes:
        name (`str`): Name of the dataset.
        language (`str`): Language of the problems, `"zh"` or `"en"`.
        text_fields (`tuple[str, ...]`): Fields that form the text, joined by spaces.
        fields (`dict[str, str]`): Fields of the columns `equation`, `answer` and `id`. The default `id` is the line.
        split_schemes (`dict[str, int]`): Number of folds of each split scheme, 0 for a scheme without folds. The first
            scheme is the default.
        files (`dict[str, Sequence[str]]`): Possible file names of each split.
        fold_field (`str`, *optional*): Field with the fold of a problem.
        folders (`tuple[str, ...]`): Alternative names of the dataset's folder in `data_dir`.
        origin (`str`): Sentence that says where the files come from.
    """

    name: ClassVar[str]
    language: ClassVar[str] = "zh"
    text_fields: ClassVar[tuple[str, ...]] = ("original_text",)
    fields: ClassVar[dict[str, str]] = {"equation": "equation", "answer": "ans", "id": "id"}
    split_schemes: ClassVar[dict[str, int]] = {"public": 0}  # The published files; missing files are ignored.
    files: ClassVar[Mapping[str, Sequence[str]]] = {split: (f"{part}.jsonl",) for split, part in PARTS.items()}
    fold_field: str | None = None
    folders: ClassVar[tuple[str, ...]] = ()
    origin: ClassVar[str]

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        """Return the rows of each split in the order of the source, by default from its file in `files`. `fold` is the
        fold to hold out, if the split scheme has folds."""
        return self.read_files(reader, self.files)

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. Raises `DataError` for a damaged record."""
        columns: dict[str, Any] = {"text": " ".join(record.text(name).strip() for name in self.text_fields).strip()}
        columns |= {column: record.joined(field) for column, field in self.fields.items()}
        columns["fold"] = record.index(self.fold_field) if self.fold_field else None
        return make_row(record, self.name, self.language, **columns)

    def read_files(self, reader: RecordReader, files: Mapping[str, Sequence[str]]) -> dict[str, Rows]:
        """Read the splits whose files exist. Raises `DataError` if no file exists."""
        there = [split for split, names in files.items() if reader.find(*names) is not None]
        return {split: reader.rows(self.row, *files[split]) for split in there or [next(iter(files))]}


def split_by_fold(rows: Iterable[dict[str, Any]], fold: int | None) -> dict[str, Rows]:
    """Split rows into the test fold `fold` and all other folds for training. Rows without a fold are left out."""
    splits: dict[str, Rows] = {"train": [], "test": []}
    for row in rows:
        if row["fold"] >= 0:
            splits["test" if row["fold"] == fold else "train"].append(row)
    return splits


def hold_out(rows: Rows, fraction: float, seed: int = 0) -> tuple[Rows, Rows]:
    """Hold out a random share of the rows, at least one but not all, and return training and validation rows."""
    count = min(max(round(fraction * len(rows)), 1), len(rows) - 1)
    chosen = set(random.Random(seed).sample(range(len(rows)), max(count, 0)))
    return [row for place, row in enumerate(rows) if place not in chosen], [rows[place] for place in sorted(chosen)]


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


def tenth_of(name: str) -> int:
    """Return a number from 0 to 9 that depends only on a hash of `name`, to assign names to splits."""
    return int.from_bytes(blake2b(name.encode(), digest_size=8).digest()) % 10


def kind_by_operations(count: int) -> str:
    """Return the `kind` of a problem whose equation has `count` operators."""
    return f"{count} operation{'s' * (count != 1)}" if count < 3 else "3 or more operations"


def split_by_complexity(rows: Iterable[dict[str, Any]], shares: Mapping[str, int]) -> dict[str, Rows]:
    """Split rows so that the splits have the same `shares` (`{"train": 8, "test": 2}`) of each level of
    `Expression.complexity()` and of the problems without a valid equation, chosen by a hash of the ids. The scheme
    follows section 4.1 of Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge
    Distillation", whose own split is not published."""
    rows = list(rows)
    levels: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        levels.setdefault(_level(row), []).append(index)
    bounds, total = list(accumulate(shares.values())), sum(shares.values())
    names = [""] * len(rows)
    for members in levels.values():
        members.sort(key=lambda index: blake2b(rows[index]["id"].encode(), digest_size=8).digest())
        ends = [round(len(members) * bound / total) for bound in bounds]
        for name, start, end in zip(shares, [0, *ends], ends, strict=False):
            for index in members[start:end]:
                names[index] = name
    return split_by_name(rows, names)


def _level(row: dict[str, Any]) -> str:
    try:
        return problem_from_row(row).expression.complexity()
    except (ExpressionError, ProblemError, AttributeError):
        return "unknown"

"""Base class of data set loaders."""

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

PARTS = {"train": "train", "validation": "valid", "test": "test"}  # usual names of the files of each split


class MwpLoader:
    """
    Base class of the loaders of data sets. To add a data set, derive a class in `chinese.py` or `english.py` and add
    it to `LOADERS` there.

    Class attributes:
        name (`str`): The data set's name.
        language (`str`): `"zh"` or `"en"`.
        text_fields (`tuple[str, ...]`): Fields of the text, joined by spaces.
        fields (`dict[str, str]`): Fields of the equation, the answer and the id (by default the line).
        lists (`frozenset[str]`): Columns whose field may hold a list.
        split_schemes (`dict[str, str]`): Name and description of each public split; the first is the default.
        fold_schemes (`dict[str, int]`): Number of folds of the split schemes that have folds.
        files (`dict[str, Sequence[str]]`): Possible names of the file of each split.
        folders (`tuple[str, ...]`): Further names of the data set's folder inside `data_dir`.
        origin (`str`): Sentence with the source of the files.
    """

    name: ClassVar[str]
    language: ClassVar[str] = "zh"
    text_fields: ClassVar[tuple[str, ...]] = ("original_text",)
    fields: ClassVar[dict[str, str]] = {"equation": "equation", "answer": "ans", "id": "id"}
    lists: ClassVar[frozenset[str]] = frozenset()
    split_schemes: ClassVar[dict[str, str]] = {
        "public": "the published train, validation and test files, as far as they are there"
    }
    fold_schemes: ClassVar[dict[str, int]] = {}
    files: ClassVar[Mapping[str, Sequence[str]]] = {split: (f"{part}.jsonl",) for split, part in PARTS.items()}
    folders: ClassVar[tuple[str, ...]] = ()
    origin: ClassVar[str]

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        """
        Return the rows of the schema, in the order of the source, of each split: by default those of `files`.

        Args:
            reader ([`RecordReader`]): The data set's files.
            scheme (`str`): One of `split_schemes`.
            fold (`int`, *optional*): The fold to hold out, if the scheme has folds.
        """
        return self.read_files(reader, self.files)

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """Make the row of a record; `fold` is the name of the field of its fold. `DataError` for a damaged record."""
        columns: dict[str, Any] = {"text": " ".join(record.text(name).strip() for name in self.text_fields).strip()}
        read = {"equation": record.text, "answer": record.scalar, "id": record.scalar}
        read |= dict.fromkeys(self.lists, record.joined)
        columns |= {column: read[column](field) for column, field in self.fields.items()}
        columns["fold"] = None if fold is None else record.index(fold)
        return make_row(record, self.name, self.language, **columns)

    def read_files(self, reader: RecordReader, files: Mapping[str, Sequence[str]]) -> dict[str, Rows]:
        """Read the splits whose files exist; `DataError` if there are none."""
        there = [split for split, names in files.items() if reader.find(*names) is not None]
        return {split: reader.rows(self.row, *files[split]) for split in there or [next(iter(files))]}


def split_by_fold(rows: Iterable[dict[str, Any]], fold: int | None) -> dict[str, Rows]:
    """Split into one fold for testing and the others for training; rows without a fold are left out."""
    splits: dict[str, Rows] = {"train": [], "test": []}
    for row in rows:
        if row["fold"] >= 0:
            splits["test" if row["fold"] == fold else "train"].append(row)
    return splits


def hold_out(rows: Rows, fraction: float, seed: int = 0) -> tuple[Rows, Rows]:
    """Return training and validation rows: a random share of the rows is held out."""
    chosen = set(random.Random(seed).sample(range(len(rows)), round(fraction * len(rows))))
    return [row for place, row in enumerate(rows) if place not in chosen], [rows[place] for place in sorted(chosen)]


def split_by_name(rows: Iterable[dict[str, Any]], names: Iterable[str]) -> dict[str, Rows]:
    """Assign each row to the split named beside it; empty splits are left out."""
    splits: dict[str, Rows] = {"train": [], "validation": [], "test": []}
    for row, name in zip(rows, names, strict=True):
        splits[name].append(row)
    return {name: part for name, part in splits.items() if part}


def split_by_lists(rows: Rows, keys: Sequence, validation: Iterable, test: Iterable) -> dict[str, Rows]:
    """Hold out the rows with listed keys, and train on the others."""
    names = dict.fromkeys(validation, "validation") | dict.fromkeys(test, "test")
    return split_by_name(rows, (names.get(key, "train") for key in keys))


def split_by_complexity(rows: Iterable[dict[str, Any]], shares: Mapping[str, int]) -> dict[str, Rows]:
    """
    Split each level of `Expression.complexity()`, and the problems without a readable equation, by the same shares,
    such as `{"train": 8, "test": 2}`. The choice depends on a hash of the rows' ids. Yu et al., "Efficient
    Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation", section 4.1, do not publish theirs.
    """
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

"""Base class of data set loaders."""

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any, ClassVar

from ...expressions import ExpressionError
from ...problems import ProblemError
from ..reading.file_contents import RecordReader
from ..reading.schema import Record, make_row, problem_from_row


Rows = list[dict[str, Any]]

PARTS = {"train": "train", "validation": "valid", "test": "test"}
"""The splits, and what their files are mostly called."""


class MwpLoader:
    """
    Base class of the loaders, one per data set, with the facts about the set. To add a data set, derive a class
    in `chinese.py` or `english.py` and add it to `LOADERS` there.

    Class attributes:
        name (`str`): The data set's name.
        language (`str`): `"zh"` or `"en"`.
        text_fields (`tuple[str, ...]`): The fields of a record that make up the text, joined by spaces.
        fields (`dict[str, str]`): The fields that hold the equation, the answer and the id; without one for the id the
            line is taken.
        lists (`frozenset[str]`): Columns whose field may hold a list.
        split_schemes (`dict[str, str]`): Name of each public split and what it is; the first one is the default.
        fold_schemes (`dict[str, int]`): Split schemes that need a fold, with their numbers of folds.
        files (`dict[str, Sequence[str]]`): Names that the file of each split may have, where each has one.
        folders (`tuple[str, ...]`): Names beside its own that the data set's folder may have inside `data_dir`.
        origin (`str`): Sentence that says where to get the files.
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
        Rows of the schema, in the order of the source, for `"train"`, `"validation"` and `"test"`, as far as there are
        such splits: by default those of `files`.

        Args:
            reader ([`RecordReader`]): The data set's files.
            scheme (`str`): One of `split_schemes`.
            fold (`int`, *optional*): The fold to hold out, if the scheme has folds.
        """
        return self.read_files(reader, self.files)

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """Make the row of a record, with the number in its field `fold`; `DataError` for a damaged one."""
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
    Make splits in which each level of `Expression.complexity()` has the same share, such as `{"train": 8, "test": 2}`,
    chosen by a hash of the rows' ids: the same each time, whatever the order of the source. Problems without an
    equation that can be read are a level too. Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning
    and Knowledge Distillation", section 4.1, do not say which problems are in which part.
    """
    rows = list(rows)
    levels: dict[str, list[int]] = {}
    for index, row in enumerate(rows):
        levels.setdefault(_level(row), []).append(index)
    names, total = [""] * len(rows), sum(shares.values())
    for members in levels.values():
        members.sort(key=lambda index: blake2b(rows[index]["id"].encode(), digest_size=8).digest())
        start, passed = 0, 0
        for name, share in shares.items():
            passed += share
            end = round(len(members) * passed / total)
            for index in members[start:end]:
                names[index] = name
            start = end
    return split_by_name(rows, names)


def _level(row: dict[str, Any]) -> str:
    try:
        return problem_from_row(row).expression.complexity()
    except (ExpressionError, ProblemError, AttributeError):
        return "unknown"

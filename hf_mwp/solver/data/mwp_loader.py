"""Base class of dataset loaders."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from .file_contents import RecordReader
from .schema import Record, Rows, make_row


PARTS = {"train": "train", "validation": "valid", "test": "test"}  # Usual file names of the splits.
CHANGED_COLUMNS = ("id", "text", "equation", "answer")  # Columns that augmentation changes.


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
        present = [split for split, names in files.items() if reader.find(*names) is not None]
        return {split: reader.rows(self.row, *files[split]) for split in present or [next(iter(files))]}


def kind_by_operations(count: int) -> str:
    """Return the `kind` of a problem whose equation has `count` operators."""
    return f"{count} operation{'s' * (count != 1)}" if count < 3 else "3 or more operations"

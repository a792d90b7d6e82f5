"""Loaders, which read the files of a dataset into rows: the base class, and the loader of any file of problems."""

from collections.abc import Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from typing import Any, ClassVar

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.language import LATIN_WORD, language_of

from .data_error import DataError
from .file_contents import RECORD_SUFFIXES, RecordReader
from .file_format import ALIASES, FileFormat, missing_text_message
from .record import Record, Rows
from .schema import make_row


PARTS = {"train": "train", "validation": "valid", "test": "test"}  # Usual file names of the splits.
CHANGED_COLUMNS = ("id", "text", "equation", "answer")  # Columns that augmentation changes.
SPLIT_FILES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
"""Beginnings of the file names of each split."""


class MwpLoader:
    """Base class of dataset loaders. [`add_dataset`] adds a derived class; the loaders of this package are in the
    tuples `LOADERS` of `chinese.py` and `english.py`.

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
    files: ClassVar[Mapping[str, Sequence[str]]] = {split: (f"{stem}.jsonl",) for split, stem in PARTS.items()}
    fold_field: str | None = None
    folders: ClassVar[tuple[str, ...]] = ()
    origin: ClassVar[str]

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        """Return the rows of each split in the order of the source, by default from its file in `files`. `fold` is the
        fold to hold out, if the split scheme has folds."""
        return self.read_files(reader, self.files)

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. Raises `DataError` for a damaged record."""
        texts = [record.text(name).strip() for name in self.text_fields]
        columns: dict[str, Any] = {"text": " ".join(texts).strip()}
        for column, field in self.fields.items():
            columns[column] = record.joined(field)
        if self.fold_field:
            columns["fold"] = record.index(self.fold_field)
        return make_row(record, self.name, self.language, **columns)

    def read_files(self, reader: RecordReader, files: Mapping[str, Sequence[str]]) -> dict[str, Rows]:
        """Read the splits whose files exist. Raises `DataError` if no file exists."""
        present = [split for split, names in files.items() if reader.find(*names)]
        # Reading a missing file raises the error.
        present = present or [next(iter(files))]
        return {split: reader.rows(self.row, *files[split]) for split in present}


class FileLoader(MwpLoader):
    """Loader of a file, or of a folder with `train`, `validation` (or `valid`, `val`, `dev`) or `test` files, that end
    in `.jsonl`, `.json` or `.csv`, optionally gzipped. The beginning of the name of a single file determines its split
    (`test_hard.jsonl`), by default the training split.

    Each record has a text and optionally an equation, an answer, an id, a `language` (`"zh"` or `"en"`) and a
    `context`, which several questions share. The names of the fields are those in `file_format` and the usual names in
    `ALIASES`; with `usual_names=False`, a column that is named in `file_format` must have this name. By default a text
    with Chinese characters is Chinese, a text without words (`36÷4=?`) is Chinese if any text of the files is; other
    texts have the language passed to the loader.
    """

    split_schemes = {"files": 0}
    origin = "Pass a file, or a folder with train, validation or test files, that end in .jsonl, .json, .csv or .tsv."

    def __init__(
        self, path: Path, language: str = "en", file_format: FileFormat | None = None, usual_names: bool = True
    ) -> None:
        self.path = path
        self.other_language = language
        self.file_format = file_format or FileFormat()
        self.usual_names = usual_names
        self.read_fields: dict[str, None] = {}  # names of the fields in all records, in their order

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        if self.path.is_file():
            splits = {split_of_file(self.path): reader.rows(self.row, self.path.name)}
        else:
            splits = self.read_files(reader, self._split_files(reader))
        self._check_columns()
        rows = list(chain.from_iterable(splits.values()))
        has_chinese = any(row["language"] == "zh" for row in rows)
        for row in rows:
            if not row["language"]:
                is_chinese = has_chinese and not LATIN_WORD.search(row["text"])
                row["language"] = "zh" if is_chinese else self.other_language
        return splits

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. An unknown language is `""`, and is detected when all rows are read."""
        self.read_fields |= dict.fromkeys(record.fields)
        names = {}
        for column in ALIASES:
            names[column] = record.first_of(self.file_format.names_of(column, self.usual_names))
        text = " ".join(map(record.text, text_fields(record, self.file_format, self.usual_names)))
        columns = {}
        for column in ("equation", "answer"):
            if names[column]:
                columns[column] = record.joined(names[column])
        if names["id"]:
            columns["id"] = record.text(names["id"])
        language = record.fields.get(names["language"]) or language_of(text, "")
        if language not in ("zh", "en", ""):
            record.fail(f"expected 'zh' or 'en', not {language!r}", names["language"])
        dataset = Path(record.file).name.partition(".")[0]
        row = make_row(record, dataset, language, text.strip(), **columns)
        if names["context"]:
            row["context"] = record.text(names["context"])
        return row

    def _split_files(self, reader: RecordReader) -> dict[str, list[str]]:
        """Return the possible file names of each split. Raises `DataError` if several files of a split exist."""
        files = {}
        for split, stems in SPLIT_FILES.items():
            names = [stem + suffix for stem, suffix in product(stems, RECORD_SUFFIXES)]
            check_single(split, [name for name in names if reader.find(name)], self.path)
            files[split] = names
        return files

    def _check_columns(self) -> None:
        """Raise `DataError` if no record has a field that is named in `file_format`."""
        missing = [name for name in self.file_format.columns.values() if name not in self.read_fields]
        if missing and self.read_fields and not self.usual_names:
            fault = f"no record has this field, which `columns` names. The fields are {', '.join(self.read_fields)}"
            raise DataError(fault, self.path, field=missing[0])


def check_single(split: str, names: Sequence[str], folder: Path) -> None:
    """Raise `DataError` if several files in a folder may be a split."""
    if len(names) > 1:
        raise DataError(f"several files may be the {split} split: {', '.join(names)}. Pass one of the files", folder)


def split_of_file(path: Path) -> str:
    """Return the split with which the name of a file begins, or `"train"`."""
    for split, stems in SPLIT_FILES.items():
        if path.name.startswith(stems):
            return split
    return "train"


def text_fields(record: Record, file_format: FileFormat | None = None, usual_names: bool = True) -> list[str]:
    """Return the names of the fields that form the text of a record: `body` (if present) and text. Raises `DataError`
    if no field is the text. See [`FileLoader`] for the other arguments."""
    file_format = file_format or FileFormat()
    body = record.first_of(file_format.names_of("body", usual_names))
    names = file_format.names_of("text", usual_names)
    text = record.first_of(names)
    if text is None:
        # An empty cell, whose error says that it is empty.
        present = [name for name in names if name in record.fields]
        if not present and len(names) > 1:
            record.fail(missing_text_message(record.fields))
        text = (*present, *names)[0]
    return [body, text] if body else [text]


def changed_columns(problem: MathWordProblem) -> dict[str, str | None]:
    """Return the columns of a problem that differ from the columns of the row from which it was made."""
    return {column: getattr(problem, column) for column in CHANGED_COLUMNS}


def kind_by_operations(count: int) -> str:
    """Return the `kind` of a problem whose equation has `count` operators."""
    if count >= 3:
        return "3 or more operations"
    return f"{count} operation{'s' * (count != 1)}"

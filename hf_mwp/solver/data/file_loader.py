"""Loader of files of problems: JSON lines, JSON arrays or CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hf_mwp.utils.language import LATIN_WORD, language_of

from .data_error import DataError
from .file_contents import RECORD_SUFFIXES, RecordReader
from .file_format import ALIASES, FileFormat, missing_text_message
from .mwp_loader import MwpLoader
from .schema import Record, Rows, make_row


SPLIT_FILES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
"""Beginnings of the file names of each split."""


class FileLoader(MwpLoader):
    """Loader of a file, or of a folder with `train`, `validation` (or `valid`, `val`, `dev`) or `test` files, that end
    in `.jsonl`, `.json` or `.csv`, optionally gzipped. The beginning of the name of a single file determines its split
    (`test_hard.jsonl`), by default the training split.

    Each record has a text and optionally an equation, an answer, an id and a `language` (`"zh"` or `"en"`). The names
    of the fields are those in `file_format` and the usual names in `ALIASES`; with `usual_names=False`, a column that
    is named in `file_format` must have this name. By default a text with Chinese characters is Chinese, a text without
    words (`36÷4=?`) is Chinese if any text of the files is; other texts have the language passed to the loader.
    """

    split_schemes = {"files": 0}
    origin = "Pass a file, or a folder with train, validation or test files, that end in .jsonl, .json, .csv or .tsv."

    def __init__(
        self, path: Path, language: str = "en", file_format: FileFormat | None = None, usual_names: bool = True
    ) -> None:
        self.path = path
        self.other_language = language
        self.file_format = FileFormat() if file_format is None else file_format
        self.usual_names = usual_names
        self.read_fields: dict[str, None] = {}  # names of the fields in all records, in their order

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        if self.path.is_file():
            splits = {split_of_file(self.path): reader.rows(self.row, self.path.name)}
        else:
            endings = {
                split: [stem + end for stem in SPLIT_FILES[split] for end in RECORD_SUFFIXES] for split in SPLIT_FILES
            }
            for split, names in endings.items():
                check_single(split, [name for name in names if reader.find(name)], self.path)
            splits = self.read_files(reader, endings)
        self._check_columns(reader)
        rows = [row for split in splits.values() for row in split]
        language = "zh" if any(row["language"] == "zh" for row in rows) else self.other_language
        for row in rows:
            row["language"] = row["language"] or (self.other_language if LATIN_WORD.search(row["text"]) else language)
        return splits

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. An unknown language is `""`, and is detected when all rows are read."""
        self.read_fields |= dict.fromkeys(record.fields)
        names = {column: record.first_of(self.file_format.names_of(column, self.usual_names)) for column in ALIASES}
        fields = text_fields(record, self.file_format, self.usual_names)
        text = " ".join(map(record.text, fields))
        written = {column: record.joined(names[column]) if names[column] else "" for column in ("equation", "answer")}
        written["id"] = record.text(names["id"]) if names["id"] else None
        language = record.fields[names["language"]] if names["language"] else ""
        language = language or language_of(text, "")
        if language not in ("zh", "en", ""):
            record.fail(f"expected 'zh' or 'en', not {language!r}", names["language"])
        dataset = Path(record.file).name.partition(".")[0]
        return make_row(record, dataset, language, text.strip(), **written)

    def _check_columns(self, reader: RecordReader) -> None:
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
    return next((split for split, stems in SPLIT_FILES.items() if path.name.startswith(stems)), "train")


def text_fields(record: Record, file_format: FileFormat | None = None, usual_names: bool = True) -> list[str]:
    """Return the names of the fields that form the text of a record: `body` (if present) and text. Raises `DataError`
    if no field is the text. See [`FileLoader`] for the other arguments."""
    file_format = FileFormat() if file_format is None else file_format
    body = record.first_of(file_format.names_of("body", usual_names))
    names = file_format.names_of("text", usual_names)
    text = record.first_of(names)
    if text is None:
        # An empty cell, whose error says that it is empty.
        text = next((name for name in names if name in record.fields), None)
    if text is None and len(names) == 1:
        text = names[0]
    if text is None:
        record.fail(missing_text_message(record.fields))
    return [body, text] if body else [text]

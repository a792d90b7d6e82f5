"""Loader of files of problems: JSON lines, JSON arrays or CSV."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ...problems.language import LATIN_WORD, language_of
from ..data_error import DataError
from ..reading.file_contents import RECORD_SUFFIXES, RecordReader
from ..reading.schema import Record, Rows, make_row
from .mwp_loader import MwpLoader


ALIASES = {
    "text": ("text", "original_text", "sQuestion", "problem", "question", "Question"),
    "equation": ("equation", "Equation", "formula", "lEquations"),
    "answer": ("answer", "Answer", "ans", "lSolutions"),
    "id": ("id", "ID", "iIndex"),
    "body": ("body", "Body"),
}
"""Field names for each column. The first field with a value is used. A `body` is put before the text."""

SPLIT_FILES = {"train": ("train",), "validation": ("validation", "valid", "val", "dev"), "test": ("test",)}
"""Beginnings of the file names of each split."""


class FileLoader(MwpLoader):
    """Loader of a file, or of a folder with `train`, `validation` (or `valid`, `val`, `dev`) or `test` files, that end
    in `.jsonl`, `.json` or `.csv`, optionally gzipped. The beginning of the name of a single file determines its split
    (`test_hard.jsonl`), by default the training split.

    Each record has a text and optionally an equation, an answer, an id (see `ALIASES` for the names of the fields) and
    a `language` (`"zh"` or `"en"`). By default a text with Chinese characters is Chinese, a text without words
    (`36÷4=?`) is Chinese if any text of the files is, and all other texts have the language passed to the loader.
    """

    split_schemes = {"files": 0}
    origin = "Pass a file, or a folder with train, validation or test files, that end in .jsonl, .json, .csv or .tsv."

    def __init__(self, path: Path, language: str = "en"):
        self.path, self.other_language = path, language

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
        rows = [row for split in splits.values() for row in split]
        language = "zh" if any(row["language"] == "zh" for row in rows) else self.other_language
        for row in rows:
            row["language"] = row["language"] or (self.other_language if LATIN_WORD.search(row["text"]) else language)
        return splits

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. An unknown language is `""`, and is detected when all rows are read."""
        names = {column: record.first_of(aliases) for column, aliases in ALIASES.items()}
        text = " ".join(map(record.text, text_fields(record)))
        written = {column: record.joined(names[column]) if names[column] else "" for column in ("equation", "answer")}
        written["id"] = record.text(names["id"]) if names["id"] else None
        language = record.fields.get("language") or language_of(text, "")
        if language not in ("zh", "en", ""):
            record.fail(f"expected 'zh' or 'en', not {language!r}", "language")
        dataset = Path(record.file).name.partition(".")[0]
        return make_row(record, dataset, language, text.strip(), **written)


def check_single(split: str, names: Sequence[str], folder: Path) -> None:
    """Raise `DataError` if several files in a folder may be a split."""
    if len(names) > 1:
        raise DataError(f"several files may be the {split} split: {', '.join(names)}. Pass one of the files", folder)


def split_of_file(path: Path) -> str:
    """Return the split with which the name of a file begins, or `"train"`."""
    return next((split for split, stems in SPLIT_FILES.items() if path.name.startswith(stems)), "train")


def text_fields(record: Record) -> list[str]:
    """Return the names of the fields that form the text of a record: `body` (if present) and text."""
    body, text = (record.first_of(ALIASES[column]) for column in ("body", "text"))
    return [*([body] if body else ()), text or "text"]

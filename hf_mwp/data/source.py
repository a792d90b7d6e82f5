"""Reading of data files, record by record, with the place of what is wrong."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .errors import DataError


Row = dict[str, Any]


@dataclass(frozen=True)
class Record:
    """One record of a data file and its place."""

    values: dict[str, Any]
    file: Path
    line: int

    def text(self, *names: str, optional: bool = False) -> str:
        """The first of the named fields that is there, as text; `DataError` if there is none."""
        for name in names:
            value = self.values.get(name)
            if value is None:
                continue
            if isinstance(value, (str, int, float)) and not isinstance(value, bool):
                return str(value)
            raise DataError(f"expected text or a number, got {type(value).__name__}", self.file, self.line, name)
        if optional:
            return ""
        raise DataError(f"is missing; the record has {sorted(self.values)}", self.file, self.line, names[0])

    def row(self, id: str, text: str, equation: str, answer: Any, language: str, fold: int = -1) -> Row:
        """A row of the common schema, without the data set's name."""
        if not text.strip():
            raise DataError("the problem has no text", self.file, self.line)
        row = {"id": id, "text": text, "equation": equation, "answer": str(answer), "language": language}
        return row | {"fold": fold, "line": self.line, "file": self.file.name}


class Source:
    """The files of one data set.

    Args:
        folder (`Path`): Where they are; each may be compressed (`.gz`).
        on_error (`str`): `"raise"`, or `"skip"` to count damaged records in `damaged` instead.
    """

    def __init__(self, folder: Path, on_error: str = "raise") -> None:
        self.folder, self.on_error = folder, on_error
        self.damaged: list[DataError] = []

    def has(self, name: str) -> bool:
        """Whether there is such a file, plain or compressed."""
        return any((self.folder / f"{name}{ending}").is_file() for ending in ("", ".gz"))

    def path(self, name: str) -> Path:
        """The file, plain or compressed; `DataError` if it is missing."""
        for ending in ("", ".gz"):
            if (self.folder / f"{name}{ending}").is_file():
                return self.folder / f"{name}{ending}"
        raise DataError("there is no such file, nor one that ends in .gz", self.folder / name)

    def lines(self, name: str) -> Iterator[tuple[int, str]]:
        """Lines that are not empty, with their numbers."""
        path = self.path(name)
        opened = gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8")
        number = 0
        with opened as file:
            try:
                for number, line in enumerate(file, start=1):
                    if line.strip():
                        yield number, line
            except (UnicodeDecodeError, EOFError, gzip.BadGzipFile) as error:
                raise DataError(f"cannot be read beyond this line ({error})", path, number + 1) from error

    def ids(self, name: str) -> list[str]:
        """One id of each line."""
        return [line.strip() for _, line in self.lines(name)]

    def rows(self, name: str, make_row: Callable[[Record], Row]) -> list[Row]:
        """Rows of a JSONL (or, by its ending, CSV) file."""
        return self.make_rows(self._records(name), make_row)

    def make_rows(self, records: Iterable[Record | DataError], make_row: Callable[[Record], Row]) -> list[Row]:
        """Rows of records; a damaged one raises or is counted."""
        rows = []
        for record in records:
            try:
                if isinstance(record, DataError):
                    raise record
                rows.append(make_row(record))
            except DataError as error:
                if self.on_error == "raise":
                    raise
                self.damaged.append(error)
        return rows

    def _records(self, name: str) -> Iterator[Record | DataError]:
        path = self.path(name)
        if name.removesuffix(".gz").endswith(".csv"):
            reader = csv.DictReader(line for _, line in self.lines(name))
            for values in reader:
                if None in values or None in values.values():
                    yield DataError("has another number of fields than the header", path, reader.line_num)
                else:
                    yield Record(values, path, reader.line_num)
            return
        for number, line in self.lines(name):
            try:
                values = json.loads(line)
            except (json.JSONDecodeError, RecursionError) as error:
                yield DataError(f"is no complete JSON record ({error})", path, number)
                continue
            if isinstance(values, dict):
                yield Record(values, path, number)
            else:
                yield DataError(f"expected a JSON object, got {type(values).__name__}", path, number)

"""Lines and records of data files: JSON lines, JSON arrays and CSV, plain or gzipped."""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..data_error import DataError
from .schema import Record


RECORD_SUFFIXES = (".jsonl", ".json", ".csv")
RECORD_FILES = tuple(f"{suffix}{end}" for suffix in RECORD_SUFFIXES for end in ("", ".gz"))
"""Endings of the names of files that [`read_entries`] reads."""

_SPACE = re.compile(r"\s*")


class RecordReader:
    """
    The files of a folder, each plain or, with `.gz` added to its name, gzipped. Where `on_error` is `"skip"`, damaged
    records are left out and their errors kept in `damaged`; with `"raise"` the first one raises. Where a file is
    missing, the error says with `origin` where it is to be had.
    """

    def __init__(self, folder: Path, on_error: str = "raise", origin: str = ""):
        self.folder, self.on_error, self.origin = folder, on_error, origin
        self.damaged: list[DataError] = []

    def find(self, *names: str) -> Path | None:
        """Return the first of several files that exists."""
        for name in names:
            for path in (self.folder / name, self.folder / f"{name}.gz"):
                if path.is_file():
                    return path
        return None

    def rows(self, make: Callable[[Record], dict[str, Any]], *names: str) -> list[dict[str, Any]]:
        """Return the result of `make` for each record; [`DataError`] for a missing file or unskipped damage."""
        path = self._path(names)
        rows = []
        for line, entry in read_entries(path):
            try:
                if isinstance(entry, DataError):
                    raise entry
                rows.append(make(Record(entry, str(path), line)))
            except DataError as error:
                if self.on_error == "raise":
                    raise
                self.damaged.append(error)
        return rows

    def lines(self, *names: str) -> list[str]:
        """Return the lines of a list without blank ones. A damaged list always raises."""
        return [line.strip() for line in read_lines(self._path(names)) if line.strip()]

    def numbered(self, *names: str) -> list[int]:
        """Return the whole numbers of a list, one per line. A damaged list always raises."""
        path = self._path(names)
        numbers = []
        for line, text in enumerate(read_lines(path), 1):
            if text.strip():
                if not text.strip().isdecimal():
                    raise DataError(f"expected a whole number, not {text.strip()[:40]!r}", path, line)
                numbers.append(int(text))
        return numbers

    def _path(self, names: tuple[str, ...]) -> Path:
        path = self.find(*names)
        if path is None:
            hint = f" {self.origin}" if self.origin else ""
            raise DataError(f"there is no such file, nor {names[0]}.gz.{hint}", self.folder / names[0])
        return path


def read_lines(path: Path) -> Iterator[str]:
    """
    Yield the lines of a text file with their line ends; a name that ends in `.gz` is unpacked. Bytes that are not
    UTF-8 come as lone surrogates, so that the record they stand in can be refused alone. `DataError` if the file
    cannot be read, or is a damaged or cut off gzip file, after the lines before.
    """
    number = 0
    options = {"mode": "rt", "encoding": "utf-8-sig", "errors": "surrogateescape", "newline": ""}
    try:
        with gzip.open(path, **options) if path.suffix == ".gz" else path.open(**options) as file:
            for line in file:
                number += 1
                yield line
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"the gzip file is damaged or cut off here: {error}", path, number + 1) from error
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror or error}", path) from error


def read_entries(path: Path) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """
    Yield the records of a file with their 1-based lines (in an array: 1-based records), and an error for each damaged
    one.

    A `.csv` file is read as CSV with a header. Everything else is JSON: an array if the first line that is not blank
    begins with `[`, one object per line otherwise. Blank lines are passed over.
    """
    lines = read_lines(path)
    try:
        if path.name.removesuffix(".gz").endswith(".csv"):
            yield from _csv_entries(path, lines)
            return
        begun = False
        for number, line in enumerate(lines, 1):
            text = line.strip()
            if not begun and text.startswith("["):
                yield from _array_entries(path, "".join([line, *lines]))
                return
            if text:
                begun = True
                yield number, _object(path, number, line)
    except DataError as error:
        yield error.line or 1, error


def _object(path: Path, line: int, text: str) -> dict[str, Any] | DataError:
    try:
        return _checked(path, line, json.loads(text))
    except (ValueError, RecursionError) as error:
        hint = "" if text.endswith(("\n", "\r")) else " (the last line is cut off)"
        return DataError(f"not a complete JSON object: {_fault(error)}{hint}", path, line)


def _fault(error: ValueError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    # JSON has no such limit: Python reads integers of up to 4,300 digits.
    column = f" at column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
    return getattr(error, "msg", "a number has too many digits") + column


def _checked(path: Path, line: int, value: Any) -> dict[str, Any] | DataError:
    if isinstance(value, dict):
        return value
    return DataError(f"expected a JSON object, not {type(value).__name__}", path, line)


def _array_entries(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """Yield the records of a JSON array one by one, so that those before a damaged place are still read."""
    decoder, number = json.JSONDecoder(), 1
    position = _SPACE.match(text, text.index("[") + 1).end()
    while text[position : position + 1] != "]":
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            message = f"the JSON array is damaged or cut off in this record: {_fault(error)}"
            yield number, DataError(message, path, number)
            return
        yield number, _checked(path, number, value)
        position = _SPACE.match(text, position).end()
        if text[position : position + 1] == ",":
            position = _SPACE.match(text, position + 1).end()
            number += 1
        elif text[position : position + 1] != "]":
            yield number, DataError("the JSON array is damaged or cut off after this record", path, number)
            return


def _csv_entries(path: Path, lines: Iterable[str]) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """Yield the records of CSV lines; a quoted field may hold line breaks, and an empty cell is a missing value."""
    reader = csv.reader(lines, strict=True)
    header: list[str] = []
    while True:
        number = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            # A quote that is never closed swallows the rest of the file.
            yield number, DataError(f"not CSV: {error}", path, number)
            continue
        if values is None:
            return
        if not header:
            header = [name.strip() for name in values]
        elif len(values) == len(header):
            yield number, {name: value or None for name, value in zip(header, values, strict=True)}
        elif values:
            message = f"expected {len(header)} fields as in the header, not {len(values)}"
            yield number, DataError(message, path, number)

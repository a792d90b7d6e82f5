"""Functions that read the lines and records of data files: JSON lines, JSON arrays and CSV, plain or gzipped."""

import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import islice, product
from pathlib import Path
from typing import Any

from .data_error import DataError
from .file_format import SAMPLE_SIZE, FileFormat, detect_encoding, detect_separator
from .record import Record, Rows


RECORD_SUFFIXES = (".jsonl", ".json", ".csv", ".tsv")
RECORD_FILES = tuple(map("".join, product(RECORD_SUFFIXES, ("", ".gz"))))
ANY_FORMAT = FileFormat()
SAMPLE_LINES = 100  # lines by which the separator of a CSV file is detected
_parse = partial(json.loads, parse_constant=lambda name: None)  # NaN and infinite numbers become `None`.


class RecordReader:
    """Reader of the files in a folder, plain or gzipped (with `.gz` after the name). With `on_error="skip"` damaged
    records are left out, and their errors are collected in `damaged`. The sentence `origin`, which says where the
    files come from, is added to the error for a missing file."""

    def __init__(
        self, folder: Path, on_error: str = "raise", origin: str = "", file_format: FileFormat = ANY_FORMAT
    ) -> None:
        self.folder = folder
        self.on_error = on_error
        self.origin = origin
        self.file_format = file_format
        self.damaged: list[DataError] = []

    def find(self, *names: str) -> Path | None:
        """Return the path of the first existing file among `names`, or `None` if no file exists."""
        for name, ending in product(names, ("", ".gz")):
            path = self.folder / f"{name}{ending}"
            if path.is_file():
                return path
        return None

    def rows(self, make: Callable[[Record], dict[str, Any]], *names: str, header: Sequence[str] = ()) -> Rows:
        """Return the result of `make` for each record. Raises [`DataError`] for a missing file or a damaged record."""
        path = self._path(names)
        rows = []
        for line, entry in read_entries(path, header, self.file_format):
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
        """Return the stripped lines of a file, without blank lines."""
        lines = map(str.strip, read_lines(self._path(names)))
        return list(filter(None, lines))

    def _path(self, names: tuple[str, ...]) -> Path:
        path = self.find(*names)
        if path is None:
            fault = f"neither this file nor {names[0]}.gz exists. {self.origin}".rstrip(" ")
            raise DataError(fault, self.folder / names[0])
        return path


def is_record_file(path: str | Path) -> bool:
    """Return whether a file has records, by the end of its name, in which case does not matter."""
    return str(path).lower().endswith(RECORD_FILES)


def read_lines(path: Path, encoding: str | None = None) -> Iterator[str]:
    """Yield the lines of a text file, plain or gzipped, with their line ends. Without an `encoding`, it is detected:
    UTF-8, GB 18030, or UTF-16 with a byte order mark ([`~file_format.detect_encoding`]). Bytes that do not fit become
    lone surrogates, so that only the record with these bytes is rejected. Raises `DataError` if the file cannot be
    read."""
    number = 0
    try:
        with open_file(path) as file:
            encoding = encoding or detect_encoding(file.peek(SAMPLE_SIZE), path)
            for line in TextIOWrapper(file, encoding, "surrogateescape", newline=""):
                number += 1
                if number == 1:
                    line = line.removeprefix("\ufeff")
                yield line
    except UnicodeDecodeError as error:
        fault = f"the {encoding.upper()} text is damaged or truncated here. Save it as UTF-8"
        raise DataError(fault, path, number + 1) from error
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"the gzip file is damaged or truncated here: {error}", path, number + 1) from error
    except OSError as error:
        raise DataError(f"the file cannot be read: {error.strerror or error}", path) from error


def open_file(path: Path) -> gzip.GzipFile | BufferedReader:
    """Open a file, plain or gzipped, to read bytes."""
    if path.suffix == ".gz":
        return gzip.open(path)
    return path.open("rb", buffering=SAMPLE_SIZE)


def read_records(path: Path, header: Sequence[str] = (), file_format: FileFormat = ANY_FORMAT) -> Iterator[Record]:
    """Yield the records of a file ([`read_entries`]). Raises `DataError` for a damaged record."""
    for line, entry in read_entries(path, header, file_format):
        if isinstance(entry, DataError):
            raise entry
        yield Record(entry, str(path), line)


def read_entries(
    path: Path, header: Sequence[str] = (), file_format: FileFormat = ANY_FORMAT
) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """Yield for each record of a file the 1-based line (in a JSON array: the 1-based number of the record) and the
    fields of the record, or an error if it is damaged. `header` contains the columns of a `.csv` or `.tsv` file
    without a header; in a `.tsv` file, quotes have no special meaning. The separator of a `.csv` file is that of
    `file_format`, or is detected. A file that begins with `[` is a JSON array;
    any other file has one JSON object per line. Blank lines are ignored."""
    lines = read_lines(path, file_format.encoding)
    name = path.name.lower().removesuffix(".gz")
    try:
        if name.endswith(".tsv"):
            reader = csv.reader(lines, delimiter=file_format.separator or "\t", quoting=csv.QUOTE_NONE)
            yield from _table_entries(path, reader, header)
            return
        if name.endswith(".csv"):
            separator = file_format.separator or _find_separator(path, file_format)
            reader = csv.reader(lines, delimiter=separator, strict=True)
            yield from _table_entries(path, reader, header)
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


def _find_separator(path: Path, file_format: FileFormat) -> str:
    first_lines = []
    # An unreadable file raises the error again when its lines are read.
    with suppress(DataError):
        first_lines.extend(islice(read_lines(path, file_format.encoding), SAMPLE_LINES))
    return detect_separator(first_lines, file_format, path)


def _object(path: Path, line: int, text: str) -> dict[str, Any] | DataError:
    try:
        return _checked(path, line, _parse(text.rstrip("\r\n")))
    except ValueError as error:
        fault = f"not a complete JSON object: {_fault(error)}"
        if not text.endswith(("\n", "\r")):
            fault += " (the last line may be truncated)"
        return DataError(fault, path, line)


def _fault(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg.removesuffix(' at')} at column {error.colno}"
    return str(error)


def _checked(path: Path, line: int, value: Any) -> dict[str, Any] | DataError:
    if isinstance(value, dict):
        return value
    return DataError(f"expected a JSON object, not {type(value).__name__}", path, line)


def _array_entries(path: Path, text: str) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    try:
        values = _parse(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        yield line, DataError(f"the JSON array is damaged or truncated: {_fault(error)}", path, line)
        return
    for number, value in enumerate(values, 1):
        yield number, _checked(path, number, value)


def _table_entries(path: Path, reader: Any, header: Sequence[str]) -> Iterator[tuple[int, dict[str, Any] | DataError]]:
    """Yield the records of a `csv.reader`. A quoted cell may contain line breaks; an empty cell is a missing value."""
    values: list[str] | None = []
    while values is not None:
        number = reader.line_num + 1
        try:
            values = next(reader, None)
        except csv.Error as error:
            # For example, a quote is never closed and the field extends to the end of the file.
            yield number, DataError(f"not valid CSV: {error}", path, number)
            continue
        if values and not header:
            header = [name.strip() for name in values]
            for name in header:
                if name and header.count(name) > 1:
                    raise DataError(f"the header has the column {name!r} twice", path, number)
        elif values and len(values) == len(header):
            yield number, {name: value.strip() or None for name, value in zip(header, values, strict=True)}
        elif values:
            message = f"expected {len(header)} fields as in the header, found {len(values)}"
            yield number, DataError(message, path, number)

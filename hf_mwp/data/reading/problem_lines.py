"""Problems without answers from arguments, a file, or standard input."""

import gzip
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any

from ...options.checks import refuse
from ...problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from ...usage_error import UsageError
from ..data_error import DataError
from ..datasets.file_loader import ALIASES, text_fields
from .file_contents import RECORD_FILES, read_entries, read_lines
from .schema import Record


_NO_UTF8 = re.compile("[\udc80-\udcff]")  # what `read_entries` makes of a byte that is not UTF-8
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MOST_PEEKED = 8192
_MARK = b"\xef\xbb\xbf"  # some editors begin UTF-8 files with it
_MOST_READ = 1 << 16
# A line of more bytes has too many characters, of which UTF-8 has four bytes at most.
_LONGEST_LINE = 4 * MAX_TEXT_LENGTH


def problem_batches(texts: list[str], file: str | None, size: int) -> Iterator[list[dict[str, Any]]]:
    """
    Yield batches of problems, each a dictionary with `text`, for records of a file with their `id`, and with `error`
    for a line or record that is not UTF-8 text, or for a line that is far too long, of which the beginning is kept.

    Standard input gives what lines are waiting: one by one to who answers before the next is written, whole batches of
    what comes faster. It is read for `["-"]` as texts, `"-"` as the file, and where neither is given. A file has a
    problem a line; one whose name ends in `.jsonl`, `.json` or `.csv` has records with a text, under any name that
    data sets have for it (`ALIASES`). Each may be gzipped, with `.gz` after its name. `UsageError` for both of them, a
    file that is none, and nothing to solve, [`DataError`] for a damaged one.
    """
    if texts and file is not None:
        raise UsageError("Give problems as arguments or a --file, not both.")
    if texts and texts != ["-"]:
        return _batches(({"text": text} for text in texts), size)
    if file not in (None, "-"):
        return _batches(_from_file(Path(file)), size)
    if not texts and file is None and sys.stdin.isatty():
        raise UsageError('No problem is given. Pass texts (hf-mwp solve "a problem"), --file problems.txt, or a pipe.')
    return _waiting_batches(sys.stdin.buffer, size)


def _batches(problems: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(problems, size)):
        yield batch


def _waiting_batches(stream: BufferedIOBase, size: int) -> Iterator[list[dict[str, Any]]]:
    number, rest = 0, b""
    while True:
        # What is there, however little: only an empty pipe is waited for.
        read = stream.read1(_MOST_READ)
        *lines, rest = (rest + read).split(b"\n")
        rest = rest[: _LONGEST_LINE + 1]
        if not read:
            lines.append(rest)
        problems = [_plain(line, f"Line {at}", at) for at, line in enumerate(lines, start=number + 1) if line.strip()]
        number += len(lines)
        yield from _batches(iter(problems), size)
        if not read:
            return


def _from_file(path: Path) -> Iterator[dict[str, Any]]:
    beginning = _beginning(path)
    faults = {
        "is a folder; name a file of problems in it": path.is_dir(),
        "is no file": not path.is_file(),
        "is not UTF-8 text but UTF-16, going by its first bytes: save it as UTF-8": beginning.startswith(_UTF16),
        "is no text file, going by a zero byte in its beginning: name a file of problems": b"\0" in beginning,
    }
    refuse({f"--file: {path} {fault}.": holds for fault, holds in faults.items()}, UsageError)
    if not path.name.endswith(RECORD_FILES):
        for number, line in enumerate(read_lines(path), start=1):
            if line.strip():
                yield _plain(line.encode("utf-8", "surrogateescape"), f"{path}, line {number}", number)
        return
    for line, entry in read_entries(path):
        if isinstance(entry, DataError):
            raise entry
        yield _problem(Record(entry, str(path), line))


def _beginning(path: Path) -> bytes:
    """Return the first bytes of a file, unpacked; none of a damaged one, which raises when its lines are read."""
    with suppress(EOFError, OSError, zlib.error), gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
        return file.read(_MOST_PEEKED)
    return b""


def _plain(line: bytes, place: str, number: int) -> dict[str, Any]:
    if number == 1:
        line = line.removeprefix(_MARK)
    if len(line) > _LONGEST_LINE:
        text = line[:_LONGEST_LINE].decode("utf-8", "ignore").strip()
        return {"text": text, "error": f"{place} cannot be read: {TOO_LONG}."}
    try:
        return {"text": line.decode("utf-8").strip()}
    except UnicodeDecodeError as error:
        fault = f"{place} is not UTF-8 text: byte {line[error.start]:#04x} at position {error.start}."
        return {"text": line.decode("utf-8", "replace").strip(), "error": fault}


def _problem(record: Record) -> dict[str, Any]:
    id_name = record.first_of(ALIASES["id"])
    parts = [record.fields.get(name) for name in text_fields(record)]
    if not all(isinstance(part, str) for part in parts):
        raise UsageError(f"{record.file}, line {record.line}: needs an object with a field `text`.")
    text = " ".join(parts)
    problem = {"id": record.fields[id_name]} if id_name else {}
    if byte := _NO_UTF8.search(text):
        fault = f"{record.file}, line {record.line} is not UTF-8 text: byte {ord(byte.group()) - 0xDC00:#04x}."
        return problem | {"text": _NO_UTF8.sub("\ufffd", text), "error": fault}
    return problem | {"text": text}

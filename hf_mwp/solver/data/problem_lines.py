"""Functions that read problems without answers from arguments, a file, or standard input."""

import re
import sys
import zlib
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import suppress
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import Any

from hf_mwp.runtime.problems.math_word_problem import MAX_TEXT_LENGTH, TOO_LONG
from hf_mwp.utils.usage_error import UsageError

from .file_contents import ANY_FORMAT, is_record_file, open_file, read_lines, read_records
from .file_format import UTF16_MARKS, FileFormat
from .mwp_loader import text_fields
from .record import Record


_NO_UTF8 = re.compile("[\udc80-\udcff]")  # Characters to which `read_lines` decodes bytes that are not UTF-8.


def problem_batches(
    texts: list[str], file: str | None, size: int, file_format: FileFormat = ANY_FORMAT
) -> Iterator[list[dict[str, Any]]]:
    """Yield batches of problems. A problem is a dictionary with `text`; with `id` if it is a record of a file with
    this field; and with `error` if the text is not UTF-8 or far too long. A text file has one problem per line. A
    `.jsonl`, `.json` or `.csv` file has records with a text field (named in `file_format` or `ALIASES`). Files may be
    gzipped. Standard input is read if `texts` is `["-"]`, `file` is `"-"`, or both are missing. A batch then contains
    only the available lines, so that a line can be answered before the next line is written. Raises `UsageError` for
    texts with a file, no input at all or a file that is not a text file, and `DataError` for a missing or damaged
    file."""
    if texts and file is not None:
        raise UsageError("Pass problems either as arguments or with --file, not both.")
    if texts and texts != ["-"]:
        problems = [{"text": text} for text in texts]
        return _batches(iter(problems), size)
    if file not in (None, "-"):
        return _batches(_from_file(Path(file), file_format), size)
    if not texts and file is None and sys.stdin.isatty():
        raise UsageError('No problem given. Pass texts (hf-mwp solve "a problem"), --file problems.txt, or a pipe.')
    return _waiting_batches(sys.stdin.buffer, size, file_format.encoding)


def _batches(problems: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    while batch := list(islice(problems, size)):
        yield batch


def _waiting_batches(stream: BufferedIOBase, size: int, encoding: str | None = None) -> Iterator[list[dict[str, Any]]]:
    number = 0
    rest = ""
    data = b" "
    decoder = None
    while data:
        # `read1` returns the available bytes and waits only if the pipe is empty.
        data = stream.read1(1 << 16)
        if decoder is None:
            if encoding is None:
                encoding = "utf-16" if data[:2] in UTF16_MARKS else "utf-8"
            decoder = getincrementaldecoder(encoding)("surrogateescape")
        *lines, rest = (rest + decoder.decode(data, final=not data)).split("\n")
        rest = rest[: 4 * MAX_TEXT_LENGTH]  # a longer line is refused in any case
        if not data:
            lines.append(rest)
        problems = []
        for line in lines:
            number += 1
            if line.strip():
                problems.append(_checked(line, f"Line {number}"))
        yield from _batches(iter(problems), size)


def _from_file(path: Path, file_format: FileFormat) -> Iterator[dict[str, Any]]:
    if path.is_dir():
        raise UsageError(f"--file: {path} is a folder. Pass a file with problems.")
    beginning = b""
    # Ignore errors here. A damaged file raises an error below, when its lines are read.
    with suppress(EOFError, OSError, zlib.error), open_file(path) as file:
        beginning = file.read(8192)
    if b"\0" in beginning and not beginning.startswith(UTF16_MARKS) and file_format.encoding is None:
        remedy = "Pass a text file, save the file as UTF-8, or pass its --encoding"
        raise UsageError(f"--file: {path} is not UTF-8 text. {remedy}.")
    if is_record_file(path):
        for record in read_records(path, file_format=file_format):
            yield _problem(record, file_format)
        return
    for number, line in enumerate(read_lines(path, file_format.encoding), start=1):
        if line.strip():
            yield _checked(line, f"{path}, line {number}")


def _problem(record: Record, file_format: FileFormat) -> dict[str, Any]:
    location = f"{record.file}, line {record.line}"
    id_name = record.first_of(file_format.names_of("id"))
    names = text_fields(record, file_format)
    texts = [record.fields.get(name) for name in names]
    if texts[-1] is None and names[-1] in record.fields:
        texts = [""]  # an empty cell, which is answered with an error like an empty text
    if not all(isinstance(text, str) for text in texts):
        record.text(names[-1])
        raise UsageError(f"{location}: Expected a text in the field `{names[-1]}`, found {texts[-1]!r:.80}.")
    problem = _checked(" ".join(texts), location)
    if id_name:
        return {"id": record.fields[id_name]} | problem
    return problem


def _checked(text: str, location: str) -> dict[str, Any]:
    """Return the problem of a text, with an `error` if the text is too long or has bytes that are not UTF-8."""
    text = text.removeprefix("\ufeff").strip()  # Some editors begin UTF-8 files with this byte order mark.
    if len(text) > MAX_TEXT_LENGTH:
        return {"text": text[:MAX_TEXT_LENGTH], "error": f"{location} cannot be read: {TOO_LONG}."}
    byte = _NO_UTF8.search(text)
    if byte is not None:
        fault = f"{location} is not UTF-8 text: byte {ord(byte.group()) - 0xDC00:#04x} at position {byte.start()}."
        return {"text": _NO_UTF8.sub("\ufffd", text), "error": fault}
    return {"text": text}

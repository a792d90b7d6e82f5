"""Problems without answers: as texts, from a file, or from standard input as its lines come."""

import json
import sys
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from ...usage_error import UsageError


_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_MARK = b"\xef\xbb\xbf"  # some editors begin UTF-8 files with it
_MOST_READ = 1 << 16


def problem_batches(texts: list[str], file: str | None, size: int) -> Iterator[list[dict[str, Any]]]:
    """
    Batches of problems, each a dictionary with `text`, for records of a JSONL file with their `id`, and with `error`
    for a line that is not UTF-8 text.

    Standard input gives what lines are waiting: one by one to who answers before the next is written, whole batches of
    what comes faster. It is read for `["-"]` as texts, `"-"` as the file, and where neither is given. A file has a
    problem, or a JSON object, a line. `UsageError` for both of them, a file that is none or damaged, and nothing to
    solve.
    """
    if texts and file is not None:
        raise UsageError("Give problems as arguments or a --file, not both.")
    if texts and texts != ["-"]:
        return _batches(({"text": text} for text in texts), size)
    if file not in (None, "-"):
        return _batches(_from_file(Path(file)), size)
    if not texts and file is None and sys.stdin.isatty():
        raise UsageError('There is nothing to solve: hf-mwp solve "a problem", or --file problems.txt, or a pipe.')
    return _waiting_batches(sys.stdin.buffer, size)


def _batches(problems: Iterator[dict[str, Any]], size: int) -> Iterator[list[dict[str, Any]]]:
    batch: list[dict[str, Any]] = []
    for problem in problems:
        batch.append(problem)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def _waiting_batches(stream: BufferedIOBase, size: int) -> Iterator[list[dict[str, Any]]]:
    number, rest = 0, b""
    while True:
        # What is there, however little: only an empty pipe is waited for.
        read = stream.read1(_MOST_READ)
        *lines, rest = (rest + read).split(b"\n")
        if not read:
            lines.append(rest)
        problems = [_plain(line, f"Line {at}", at) for at, line in enumerate(lines, start=number + 1) if line.strip()]
        number += len(lines)
        yield from _batches(iter(problems), size)
        if not read:
            return


def _from_file(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_dir():
        raise UsageError(f"--file: {path} is a folder; name a file of problems in it.")
    if not path.is_file():
        raise UsageError(f"There is no file {path}.")
    read = _record if path.suffix in (".jsonl", ".json") else _plain
    with path.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            if number == 1 and line.startswith(_UTF16):
                raise UsageError(f"{path} is not UTF-8 text but UTF-16, going by its first bytes: save it as UTF-8.")
            if line.strip():
                yield read(line, f"{path}, line {number}", number)


def _plain(line: bytes, place: str, number: int) -> dict[str, Any]:
    text, fault = _decode(line, place, number)
    return {"text": text.strip()} | fault


def _record(line: bytes, place: str, number: int) -> dict[str, Any]:
    text, fault = _decode(line, place, number)
    try:
        record = json.loads(text)
    except ValueError as error:
        hint = "" if line.endswith(b"\n") else " (the last line is cut off)"
        raise UsageError(f"{place}: no JSON{hint}: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise UsageError(f"{place}: needs an object with a field `text`.")
    return {name: record[name] for name in ("id", "text") if name in record} | fault


def _decode(line: bytes, place: str, number: int) -> tuple[str, dict[str, str]]:
    """The line as text, and what is wrong with it."""
    if number == 1:
        line = line.removeprefix(_MARK)
    try:
        return line.decode("utf-8"), {}
    except UnicodeDecodeError as error:
        fault = f"{place} is not UTF-8 text: byte {line[error.start]:#04x} at position {error.start}."
        return line.decode("utf-8", "replace"), {"error": fault}

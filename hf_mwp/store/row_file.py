"""File of rows in Arrow's stream format, and its entry in a manifest."""

from __future__ import annotations

import os
import zlib
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np


if TYPE_CHECKING:
    import pyarrow

KEY = np.dtype("S16")
BATCH_BYTES = 2 << 20  # size of a record batch; readers keep the metadata of every batch in memory
BLOCK = 1 << 20


@dataclass(frozen=True)
class RowFile:
    """Manifest entry of a file: name, number of rows, size in bytes and CRC-32 checksum."""

    name: str
    rows: int
    nbytes: int
    checksum: int

    def fault(self, folder: Path, verify: bool = True) -> str | None:
        """Return a description of the file's fault, or `None`. Without `verify`, only the size is checked."""
        path = folder / self.name
        try:
            size = path.stat().st_size
            if size != self.nbytes:
                return f"has {size} bytes instead of {self.nbytes}"
            wrong = verify and _checksum(path) != self.checksum
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return "does not have the content that was written to it" if wrong else None


class MappedRows:
    """Memory-mapped rows of a file."""

    def __init__(self, path: Path) -> None:
        import pyarrow

        stream = pyarrow.ipc.open_stream(pyarrow.memory_map(str(path)))
        batches = list(stream)
        self.binary = {field.name for field in stream.schema if field.type == pyarrow.binary()}
        self.columns = [dict(zip(stream.schema.names, batch.columns, strict=True)) for batch in batches]
        self.ends = list(accumulate(map(len, batches)))
        self._bytes: dict[tuple[int, str], tuple[np.ndarray, np.ndarray]] = {}

    def keys(self) -> list[np.ndarray]:
        """Return the chunks of the column `key`, or an empty list if there is no such column."""
        parts = [batch["key"] for batch in self.columns if "key" in batch]
        return [np.frombuffer(part.buffers()[1], KEY, len(part)) for part in parts]

    def row(self, place: int, names: Sequence[str]) -> dict[str, Any]:
        """Return the named columns of a row; binary values are arrays mapped from the file."""
        number = bisect_right(self.ends, place)
        batch, place = self.columns[number], place - (self.ends[number - 1] if number else 0)
        row = {}
        for name in names:
            if name in self.binary:
                offsets, content = self._content(number, name)
                row[name] = content[offsets[place] : offsets[place + 1]]
            else:
                row[name] = batch[name][place].as_py()
        return row

    def _content(self, number: int, name: str) -> tuple[np.ndarray, np.ndarray]:
        if (number, name) not in self._bytes:
            _, offsets, content = self.columns[number][name].buffers()
            self._bytes[number, name] = np.frombuffer(offsets, np.int32), np.frombuffer(content or b"", np.uint8)
        return self._bytes[number, name]


class RowFileWriter:
    """Writer of a file of rows, which has a temporary name until it is complete."""

    def __init__(self, path: Path, schema: pyarrow.Schema) -> None:
        import pyarrow

        self.path, self.schema, self._part = path, schema, path.with_suffix(".part")
        self.rows, self.nbytes, self._waiting, self._waiting_bytes = 0, 0, [], 0
        self._file = open(self._part, "wb")
        self._stream = pyarrow.ipc.new_stream(self._file, schema)

    def append(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows, given as columns."""
        import pyarrow

        batch = pyarrow.record_batch([columns[name] for name in self.schema.names], schema=self.schema)
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        self.rows, self.nbytes = self.rows + len(batch), self.nbytes + batch.nbytes
        if self._waiting_bytes >= BATCH_BYTES:
            self._write()

    def _write(self) -> None:
        import pyarrow

        self._stream.write_table(pyarrow.Table.from_batches(self._waiting, self.schema).combine_chunks())
        self._waiting, self._waiting_bytes = [], 0

    def close(self) -> RowFile:
        """Write the file to disk, rename it, and return its manifest entry."""
        import pyarrow

        self._write()
        self._stream.close()
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        pyarrow.default_memory_pool().release_unused()  # frees some ten megabytes for training
        record = RowFile(self.path.name, self.rows, self._part.stat().st_size, _checksum(self._part))
        os.replace(self._part, self.path)
        return record

    def abandon(self) -> None:
        """Remove the incomplete file."""
        with suppress(OSError):
            self._file.close()
        self._part.unlink(missing_ok=True)


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum

"""Files of a teacher cache: rows of numbers, and where each of them begins."""

from __future__ import annotations

import os
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from .packed_row import PackedRow


# One entry per row, in the order of the rows. The key is 128 bits of a hash, in two halves.
INDEX = np.dtype(
    [
        ("key", "<u8", 2),
        ("start", "<u8"),
        ("stop", "<u8"),
        ("tokens", "<u4"),
        ("positions", "<u4"),
        ("columns", "<u4"),
        ("wide", "<u4"),
    ]
)
ALIGNMENT = 8
BLOCK = 1 << 20


@dataclass(frozen=True)
class ShardRecord:
    """
    What a manifest says of a file.

    Args:
        name (`str`): Its name.
        rows (`int`): How many rows it holds.
        nbytes (`int`): Its size.
        checksum (`int`): CRC-32 of all its bytes.
    """

    name: str
    rows: int
    nbytes: int
    checksum: int

    def to_json(self) -> dict[str, Any]:
        """The fields, for a manifest."""
        return asdict(self)

    def fault(self, folder: Path, verify: bool = True) -> str | None:
        """What is wrong with the file, in words; `None` if nothing is. Without `verify` only its size is looked at."""
        path = folder / self.name
        if not path.is_file():
            return "is missing"
        size = path.stat().st_size
        if size != self.nbytes:
            return f"has {size} bytes instead of {self.nbytes}"
        if verify and checksum_of(path) != self.checksum:
            return "does not have the content that was written to it"
        return None


class ShardWriter:
    """
    Writes one file, under another name until it is complete.

    Args:
        path (`Path`): The file; one that is there already is replaced.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._part = path.with_suffix(".part")
        self._file = open(self._part, "wb")
        self._index: list[tuple] = []
        self._checksum, self.nbytes = 0, 0

    def __len__(self) -> int:
        return len(self._index)

    def append(self, key: Sequence[int], row: PackedRow) -> None:
        """Adds a row under its key."""
        start = self.nbytes
        for array in row.payload:
            self._write(memoryview(array).cast("B") if array.nbytes else b"")
        stop = self.nbytes
        self._write(bytes(-stop % ALIGNMENT))
        self._index.append((tuple(key), start, stop, row.tokens, row.positions, row.columns, row.wide))

    def close(self) -> ShardRecord:
        """Completes the file; returns once it is on the disk."""
        self._write(np.array(self._index, INDEX).tobytes())
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.replace(self._part, self.path)
        return ShardRecord(self.path.name, len(self._index), self.nbytes, self._checksum)

    def abandon(self) -> None:
        """Takes the incomplete file away."""
        try:
            self._file.close()
        except OSError:
            pass  # what could not be written is not wanted
        self._part.unlink(missing_ok=True)

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._checksum = zlib.crc32(data, self._checksum)
        self.nbytes += len(data)


class Shard:
    """
    A complete file, mapped into memory when it is first read from; copies for other processes map it themselves.

    Args:
        folder (`Path`): Where it is.
        record ([`ShardRecord`]): Its entry in the manifest.
    """

    def __init__(self, folder: Path, record: ShardRecord) -> None:
        self.path, self.record = folder / record.name, record
        self._bytes: np.ndarray | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_bytes": None}

    @property
    def mapped(self) -> np.ndarray:
        """All bytes of the file, as a `np.memmap`."""
        if self._bytes is None:
            self._bytes = np.memmap(self.path, np.uint8, mode="r")
        return self._bytes

    @property
    def index(self) -> np.ndarray:
        """The entries of its rows, also mapped."""
        return self.mapped[self.record.nbytes - self.record.rows * INDEX.itemsize :].view(INDEX)

    def read(self, row: int) -> PackedRow:
        """A row; its numbers are still in the file."""
        entry = self.index[row]
        payload = self.mapped[int(entry["start"]) : int(entry["stop"])]
        sizes = (int(entry[name]) for name in ("tokens", "positions", "columns"))
        return PackedRow(*sizes, wide=bool(entry["wide"]), payload=[payload])


def checksum_of(path: Path) -> int:
    """CRC-32 of a file."""
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(BLOCK):
            checksum = zlib.crc32(block, checksum)
    return checksum


__all__ = ["Shard", "ShardRecord", "ShardWriter", "checksum_of"]

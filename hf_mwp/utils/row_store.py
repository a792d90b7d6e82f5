"""Append-only store of rows on disk, mapped into memory."""

from __future__ import annotations

import json
import os
import zlib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from transformers.utils import logging

from .files import write_atomically
from .job import process_lock


if TYPE_CHECKING:
    import pyarrow

logger = logging.get_logger(__name__)

FORMAT = 2
MANIFEST = "manifest.json"
KEY = np.dtype("S16")
FILE_BYTES = 64 << 20  # size of a file, and so of the rows that are lost if their writer is killed


class StoreError(ValueError):
    """Error for a folder that does not contain the expected rows. The message has the path, the fault and a remedy."""


@dataclass(frozen=True)
class RowFile:
    """Manifest entry of a file: name, number of rows, size in bytes and CRC-32 checksum."""

    name: str
    rows: int
    nbytes: int
    checksum: int

    def fault(self, folder: Path, verify: bool) -> str | None:
        """Return a description of the file's fault, or `None`. Without `verify`, only the size is checked."""
        path = folder / self.name
        try:
            size = path.stat().st_size
            if size != self.nbytes:
                return f"has {size} bytes instead of {self.nbytes}"
            if verify and _checksum(path) != self.checksum:
                return "does not have the content that was written to it"
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return None


class RowStore:
    """Store of numbers, texts and bytes in Arrow files, which are mapped into memory and never read as a whole.

    Rows are numbered from 0 in the order in which they were added. If the schema has a column `key` of 16 bytes, rows
    can also be found by key: data may be shuffled, shortened or extended, and only missing rows are added. The key and
    number of each row are kept in memory.

    Files are written under a temporary name, and listed in the manifest with size and checksum when they are complete,
    so that a process may be killed at any time. Damaged files are ignored with a warning; `verify` compares checksums
    in addition to sizes (about one second for two gigabytes). Readers need no lock; writers use [`~RowStore.locked`].
    The folder is used only by this store. The `fingerprint` must change with everything on which the rows depend;
    [`StoreError`] is raised if it differs from that of the manifest.
    """

    made_by = "a different store"
    remedy = "choose another folder"

    def __init__(self, folder: str | Path, fingerprint: str, verify: bool = True) -> None:
        self.folder = Path(folder)
        self.fingerprint = fingerprint
        self._verify = verify
        self._manifest = ""
        self.clear()
        self._read_manifest()

    def clear(self) -> None:
        """Forget all rows. The next writer removes their files."""
        self.about: dict[str, Any] = {}
        self._files: list[RowFile] = []
        self._tables: dict[str, pyarrow.Table] = {}
        self._waiting: list[pyarrow.RecordBatch] = []
        self._waiting_bytes = 0
        self._ends: list[int] = []
        self._keys = np.zeros(0, KEY)
        self._numbers = np.zeros(0, np.int64)

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getstate__(self) -> dict[str, Any]:
        # Copies in other processes map the files again.
        return {**self.__dict__, "_tables": {}, "_waiting": []}

    @property
    def nbytes(self) -> int:
        """Size of all files in bytes."""
        return sum(file.nbytes for file in self._files)

    @property
    def paths(self) -> list[Path]:
        """Paths of the files."""
        return [self.folder / file.name for file in self._files]

    def _read_manifest(self) -> None:
        path = self.folder / MANIFEST
        # Bytes that are not UTF-8, as after a power failure, become invalid JSON.
        text = ""
        if path.is_file():
            text = path.read_text("utf-8", "replace")
        if text == self._manifest:
            return
        try:
            manifest = json.loads(text)
            version = f"format {manifest['format']}, fingerprint {manifest['fingerprint']}"
            details = dict(manifest["about"])
            files = [RowFile(**file) for file in manifest["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged ({error}). Remove the folder to compute its rows again.") from error
        expected = f"format {FORMAT}, fingerprint {self.fingerprint}"
        if version != expected:
            fault = f"{path} belongs to {self.made_by} ({version} instead of {expected})"
            raise StoreError(f"{fault}. Remove the folder, or {self.remedy}.")
        self.clear()
        self._manifest = text
        self.about = details
        for file in files:
            fault = file.fault(self.folder, self._verify)
            if fault is not None:
                logger.warning(f"{self.folder / file.name} {fault}. Its {file.rows} rows will be computed again.")
            else:
                self._files.append(file)
        self._index(range(len(self._files)))

    def _index(self, files: Iterable[int]) -> None:
        """Add the rows of further files to the index of keys."""
        self._ends = list(accumulate(file.rows for file in self._files))
        chunks = []
        for table in map(self._open, files):
            if "key" in table.column_names:
                chunks += table["key"].chunks
        if chunks:
            keys = np.concatenate([np.frombuffer(chunk.buffers()[1], KEY, len(chunk)) for chunk in chunks])
            order = np.argsort(keys, kind="stable")
            numbers = len(self._keys) + order
            # The keys stay sorted, with the number of the row of each.
            positions = np.searchsorted(self._keys, keys[order])
            self._keys = np.insert(self._keys, positions, keys[order])
            self._numbers = np.insert(self._numbers, positions, numbers)

    def _open(self, number: int) -> pyarrow.Table:
        import pyarrow

        name = self._files[number].name
        if name not in self._tables:
            # The table keeps the mapping when the file is closed.
            with pyarrow.memory_map(str(self.folder / name)) as source:
                self._tables[name] = pyarrow.ipc.open_stream(source).read_all()
        return self._tables[name]

    def find(self, keys: Sequence[bytes]) -> np.ndarray:
        """Return the row number of each key, -1 for missing keys."""
        keys = np.array(keys, KEY)
        positions = np.searchsorted(self._keys, keys)
        is_present = positions < len(self._keys)
        is_present[is_present] = self._keys[positions[is_present]] == keys[is_present]
        numbers = np.full(len(keys), -1)
        numbers[is_present] = self._numbers[positions[is_present]]
        return numbers

    def missing(self, keys: Sequence[bytes]) -> np.ndarray:
        """Return the indices of the keys without a row. For repeated keys, only the first index is returned."""
        keys = np.array(keys, KEY)
        absent = np.flatnonzero(self.find(keys) < 0)
        _, first = np.unique(keys[absent], return_index=True)
        return absent[np.sort(first)]

    def rows(self, numbers: Sequence[int], names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the named columns of rows, with bytes as buffers that are not copied."""
        rows = []
        for number in numbers:
            file = bisect_right(self._ends, number)
            table = self._open(file)
            index = number - self._ends[file] + len(table)
            row = {}
            for name in names:
                value = table[name][index]
                row[name] = value.as_buffer() if value.type == "binary" else value.as_py()
            rows.append(row)
        return rows

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the folder's lock, which the system releases if the process is killed."""
        with process_lock(self.folder / "lock"):
            # Another process may have added rows in the meantime.
            self._read_manifest()
            yield

    @contextmanager
    def writing(self, schema: pyarrow.Schema, about: Mapping[str, Any] | None = None) -> Iterator[None]:
        """Allow [`~RowStore.append`] in the context, which needs the lock. Unlisted files are removed."""
        listed = {file.name for file in self._files}
        for path in self.folder.glob("rows-*"):
            if path.name not in listed:
                path.unlink()
        self.about = self.about or dict(about or {})
        self._schema = schema
        try:
            yield
            self.complete()
        finally:
            self._waiting = []
            self._waiting_bytes = 0

    def append(self, columns: Mapping[str, Sequence[Any]]) -> None:
        """Add rows, given as columns. They are written when they have `FILE_BYTES` bytes."""
        import pyarrow

        batch = pyarrow.record_batch([columns[name] for name in self._schema.names], schema=self._schema)
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes >= FILE_BYTES:
            self.complete()

    def complete(self) -> None:
        """Write the waiting rows to a file and list it in the manifest, which makes them available and permanent."""
        import pyarrow

        if not self._waiting:
            return
        table = pyarrow.Table.from_batches(self._waiting, self._schema).combine_chunks()
        self._waiting = []
        self._waiting_bytes = 0
        number = 1 + max((int(file.name[5:-6]) for file in self._files), default=-1)
        path = self.folder / f"rows-{number:05d}.arrow"
        unfinished = path.with_suffix(".part")
        try:
            with open(unfinished, "wb") as file:
                with pyarrow.ipc.new_stream(file, self._schema) as stream:
                    stream.write_table(table)
                file.flush()
                os.fsync(file.fileno())
            entry = RowFile(path.name, len(table), unfinished.stat().st_size, _checksum(unfinished))
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        files = [*self._files, entry]
        manifest = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "about": self.about,
            "files": list(map(asdict, files)),
        }
        text = json.dumps(manifest, indent=1)
        write_atomically(self.folder / MANIFEST, text)
        self._files = files
        self._manifest = text
        self._index([len(files) - 1])


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum

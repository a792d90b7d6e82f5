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
from .finished_folder import process_lock


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
            wrong = verify and _checksum(path) != self.checksum
        except OSError as error:
            return f"cannot be read: {error.strerror}"
        return "does not have the content that was written to it" if wrong else None


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
        self.folder, self.fingerprint, self._verify = Path(folder), fingerprint, verify
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
        self._keys, self._numbers = np.zeros(0, KEY), np.zeros(0, np.int64)

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
        text = path.read_text("utf-8", "replace") if path.is_file() else ""
        if text == self._manifest:
            return
        try:
            manifest = json.loads(text)
            found = f"format {manifest['format']}, fingerprint {manifest['fingerprint']}"
            about, files = dict(manifest["about"]), [RowFile(**file) for file in manifest["files"]]
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path} is damaged ({error}). Remove the folder to compute its rows again.") from error
        wanted = f"format {FORMAT}, fingerprint {self.fingerprint}"
        if found != wanted:
            fault = f"{path} belongs to {self.made_by} ({found} instead of {wanted})"
            raise StoreError(f"{fault}. Remove the folder, or {self.remedy}.")
        self.clear()
        self._manifest, self.about = text, about
        for file in files:
            if fault := file.fault(self.folder, self._verify):
                logger.warning(f"{self.folder / file.name} {fault}. Its {file.rows} rows will be computed again.")
            else:
                self._files.append(file)
        self._index(range(len(self._files)))

    def _index(self, files: Iterable[int]) -> None:
        """Add the rows of further files to the index of keys."""
        before = len(self._keys)
        self._ends = list(accumulate(file.rows for file in self._files))
        tables = [self._open(number) for number in files]
        found = [part for table in tables if "key" in table.column_names for part in table["key"].chunks]
        if found:
            keys = np.concatenate([np.frombuffer(part.buffers()[1], KEY, len(part)) for part in found])
            order = np.argsort(keys, kind="stable")
            places = np.searchsorted(self._keys, keys[order])
            self._keys = np.insert(self._keys, places, keys[order])
            self._numbers = np.insert(self._numbers, places, before + order)

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
        places = np.searchsorted(self._keys, keys)
        known = places < len(self._keys)
        known[known] = self._keys[places[known]] == keys[known]
        numbers = np.full(len(keys), -1)
        numbers[known] = self._numbers[places[known]]
        return numbers

    def missing(self, keys: Sequence[bytes]) -> np.ndarray:
        """Return the indices of the keys without a row. For repeated keys, only the first index is returned."""
        keys = np.array(keys, KEY)
        absent = np.flatnonzero(self.find(keys) < 0)
        _, first = np.unique(keys[absent], return_index=True)
        return absent[np.sort(first)]

    def rows(self, numbers: Sequence[int], names: Sequence[str]) -> list[dict[str, Any]]:
        """Return the named columns of rows, with bytes as buffers that are not copied."""
        found = []
        for number in numbers:
            file = bisect_right(self._ends, number)
            table, place = self._open(file), number - (self._ends[file - 1] if file else 0)
            values = {name: table[name][place] for name in names}
            found.append({n: v.as_buffer() if v.type == "binary" else v.as_py() for n, v in values.items()})
        return found

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
        known = {file.name for file in self._files}
        for path in self.folder.glob("rows-*"):
            if path.name not in known:
                path.unlink()
        self.about, self._schema = self.about or dict(about or {}), schema
        try:
            yield
            self.complete()
        finally:
            self._waiting, self._waiting_bytes = [], 0

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
        self._waiting, self._waiting_bytes = [], 0
        number = 1 + max((int(file.name[5:-6]) for file in self._files), default=-1)
        path = self.folder / f"rows-{number:05d}.arrow"
        part = path.with_suffix(".part")
        try:
            with open(part, "wb") as file:
                with pyarrow.ipc.new_stream(file, self._schema) as stream:
                    stream.write_table(table)
                file.flush()
                os.fsync(file.fileno())
            entry = RowFile(path.name, len(table), part.stat().st_size, _checksum(part))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        files = [*self._files, entry]
        fields = {"format": FORMAT, "fingerprint": self.fingerprint, "about": self.about}
        text = json.dumps({**fields, "files": [asdict(file) for file in files]}, indent=1)
        write_atomically(self.folder / MANIFEST, text)
        self._files, self._manifest = files, text
        self._index([len(files) - 1])


def _checksum(path: Path) -> int:
    checksum = 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            checksum = zlib.crc32(block, checksum)
    return checksum

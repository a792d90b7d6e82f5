"""Outputs of a frozen teacher on disk."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor
from transformers.utils import logging

from ..store.process_lock import ProcessLock
from .cache_shard import Shard, ShardRecord, ShardWriter
from .output_layout import OutputLayout
from .packed_row import PackedRow


logger = logging.get_logger(__name__)

FORMAT = 1
MANIFEST = "manifest.json"


class CacheError(ValueError):
    """A folder that holds something else than the cache that is looked for."""


class TeacherCache:
    """
    What a frozen teacher says to the rows of a data set, so that it has to be asked once and not in every epoch.

    A row is found by a key, 128 bits of a hash of its content: data sets may be shuffled, cut or extended, and rows
    that are not there yet are added. Numbers are fp16, and fp32 in rows where one is too large for that; they lie
    without padding in files of some ten megabytes, which are mapped into memory and never read as a whole. What is
    held per row is its key's place, 16 bytes.

    Everything that makes the outputs what they are is in the fingerprint that names the folder. Files are written
    under another name and enter the manifest, with size and checksum, when they are complete, so that a process may be
    killed at any time. Readers need no lock; writers take [`~TeacherCache.locked`].

    Args:
        folder (`str` or `Path`):
            The cache's own folder.
        fingerprint (`str`):
            Of everything but the rows; must be that of the manifest.
        verify (`bool`, *optional*, defaults to `True`):
            Compare checksums and not only sizes, about a second for two gigabytes. Damaged files are left out, with a
            warning, and so are written anew.

    Raises:
        CacheError: the folder belongs to another cache, or its manifest cannot be read.
    """

    def __init__(self, folder: str | Path, fingerprint: str, verify: bool = True) -> None:
        self.folder, self.fingerprint = Path(folder), fingerprint
        self.layout: OutputLayout | None = None
        self._made_from: Mapping[str, Any] = {}
        self._shards: list[Shard] = []
        if (self.folder / MANIFEST).is_file():
            self._read_manifest(verify)
        self._sort_keys()

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def nbytes(self) -> int:
        """Size of all files."""
        return sum(shard.record.nbytes for shard in self._shards)

    def _read_manifest(self, verify: bool) -> None:
        path = self.folder / MANIFEST
        try:
            manifest = json.loads(path.read_text("utf-8"))
            version, fingerprint = manifest["format"], manifest["fingerprint"]
            if version == FORMAT:
                self.layout, self._made_from = OutputLayout(**manifest["layout"]), manifest["made_from"]
                records = [ShardRecord(**record) for record in manifest["shards"]]
        except (ValueError, KeyError, TypeError) as error:
            raise CacheError(
                f"{path} is damaged ({error}): remove the folder, and the cache is built anew."
            ) from error
        if version != FORMAT:
            raise CacheError(
                f"{path} has format {version}, this version of hf_mwp reads format {FORMAT}: remove the folder, or "
                "choose another `teacher_cache_dir`."
            )
        if fingerprint != self.fingerprint:
            raise CacheError(
                f"{path} belongs to another teacher, data or collation (fingerprint {fingerprint} instead of "
                f"{self.fingerprint}): remove the folder, or choose another `teacher_cache_dir`."
            )
        for record in records:
            fault = record.fault(self.folder, verify)
            if fault is None:
                self._shards.append(Shard(self.folder, record))
            else:
                logger.warning(f"{path.parent / record.name} {fault}: its {record.rows} rows are computed again.")

    def _sort_keys(self) -> None:
        """Half of each key, sorted, with the places of the rows: what all look-ups go through."""
        halves = [np.array(shard.index["key"][:, 0]) for shard in self._shards]
        places = [np.arange(len(half)) + (number << 32) for number, half in enumerate(halves)]
        keys = np.concatenate([np.zeros(0, np.uint64), *halves])
        order = np.argsort(keys, kind="stable")
        self._keys = keys[order]
        self._places = np.concatenate([np.zeros(0, np.int64), *places])[order]

    # Reading

    def _find(self, key: Sequence[int]) -> tuple[Shard, int] | None:
        first, second = np.uint64(key[0]), np.uint64(key[1])
        at = int(np.searchsorted(self._keys, first))
        while at < len(self._keys) and self._keys[at] == first:
            number, row = divmod(int(self._places[at]), 1 << 32)
            if self._shards[number].index[row]["key"][1] == second:
                return self._shards[number], row
            at += 1
        return None

    def missing(self, keys: np.ndarray) -> np.ndarray:
        """Which of the keys `(n, 2)` are not there: their indices, of equal keys the first one only."""
        keys = np.asarray(keys, np.uint64).reshape(-1, 2)
        absent = np.flatnonzero([self._find(key) is None for key in keys])
        _, first = np.unique(keys[absent], axis=0, return_index=True)
        return absent[np.sort(first)]

    def read(self, keys: Sequence[Sequence[int]]) -> list[PackedRow]:
        """
        The rows of some keys.

        Raises:
            CacheError: one is not there.
        """
        found = [self._find(key) for key in keys]
        if None in found:
            raise CacheError(
                f"Example {found.index(None)} of the batch is not in the teacher cache {self.folder}: the data set "
                "gives other rows than when training began. Rows that change (augmentation, random cropping) cannot "
                "be cached: set `cache_teacher_outputs=False`."
            )
        return [shard.read(row) for shard, row in found]

    def assemble(self, keys: Sequence[Sequence[int]], inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        """The rows of the keys as padded tensors for the batch `inputs`, see [`OutputLayout.assemble`]."""
        return self.layout.assemble(self.read(keys), inputs)

    # Writing

    @contextmanager
    def locked(self):
        """Holds the folder's lock, which is free again when a process that holds it dies."""
        with ProcessLock(self.folder / "lock").held(self._tell_waiting):
            yield

    def _tell_waiting(self, holder: str) -> None:
        logger.warning(f"The teacher cache in {self.folder} is being built by {holder}; waiting for it.")

    def begin(self, layout: OutputLayout, made_from: Mapping[str, Any]) -> None:
        """
        Prepares the folder for writing: fixes the layout and takes away what was not completed.

        Args:
            layout ([`OutputLayout`]): What is kept of a row.
            made_from (`Mapping`): What the fingerprint was made from, for a person who reads the manifest.
        """
        if self.layout is None:
            self.layout, self._made_from = layout, made_from
        self._write_manifest()
        known = {shard.record.name for shard in self._shards}
        for path in [*self.folder.glob("shard-*.data"), *self.folder.glob("shard-*.part")]:
            if path.name not in known:
                path.unlink()

    def writer(self) -> ShardWriter:
        """A file for further rows; [`~TeacherCache.add`] it when it is complete."""
        numbers = [int(shard.record.name[6:-5]) for shard in self._shards]
        return ShardWriter(self.folder / f"shard-{max(numbers, default=-1) + 1:05d}.data")

    def add(self, writer: ShardWriter) -> None:
        """Completes a file and puts it into the manifest."""
        self._shards.append(Shard(self.folder, writer.close()))
        self._write_manifest()

    def finish(self) -> None:
        """Makes the added rows known to this reader."""
        self._sort_keys()

    def _write_manifest(self) -> None:
        manifest = {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "made_from": dict(self._made_from),
            "layout": self.layout.to_json(),
            "shards": [shard.record.to_json() for shard in self._shards],
        }
        part = self.folder / f"{MANIFEST}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:
                json.dump(manifest, file, indent=1)
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self.folder / MANIFEST)
        finally:
            part.unlink(missing_ok=True)


__all__ = ["CacheError", "TeacherCache"]

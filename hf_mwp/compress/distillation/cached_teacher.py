"""Teacher whose outputs are cached on disk."""

import errno
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import convert_bytes, extract_model_from_parallel
from torch import Tensor, nn
from transformers.utils import logging

from hf_mwp.compress.models.fingerprints import describe, hash_model, hash_processing, row_key
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.utils.job import digest_of
from hf_mwp.utils.row_store import FORMAT

from .ensemble_teacher import TEACHER_INPUTS, EnsembleTeacher, members_of
from .features import Features
from .live_teacher import LiveTeacher
from .teacher_cache import OutputLayout, TeacherCache


logger = logging.get_logger(__name__)

CACHED_OUTPUTS = "cached_teacher_outputs"
NUM_CHECKED = 8  # rows that are checked, and whose size is measured, before the cache is built
ROWS_AT_ONCE = 1000
OFF = "set `cache_teacher_outputs=False`"


@dataclass(eq=False)
class CachedTeacher:
    """Teacher with the interface of [`LiveTeacher`] that runs once over the rows of a dataset and stores its outputs
    in a [`TeacherCache`]. Of several processes that need the same cache, one builds it, protected by its lock."""

    live: LiveTeacher
    folder: Path  # parent folder of all caches
    trim: Callable[[list], list]  # turns rows of the dataset into rows for the collator
    to_device: Callable[[Mapping[str, Any]], dict[str, Any]]  # moves a batch, in the teacher's precision
    context: Callable[[], Any]  # returns the context in which the teacher runs (mixed precision)
    length: Callable[[Any], int]  # the longest rows are computed first
    batch_size: int
    processing: Any  # processor or tokenizer; like `mixed_precision` part of the cache's fingerprint
    mixed_precision: str
    dtype: torch.dtype  # of the returned outputs, which is the student's
    progress: Callable[[int, int], None]  # called with the number of finished rows and of all rows
    cache: TeacherCache | None = None

    @property
    def model(self) -> nn.Module:
        """The teacher, or an [`EnsembleTeacher`]."""
        return self.live.model

    def prepare(self, dataset: Any, collator: Callable[[list], Mapping[str, Any]]) -> Callable:
        """Complete the cache for a dataset, and return a collator that adds the teacher's outputs. Raises `CacheError`
        if the folder has a different cache, `OSError` without space, `ValueError` if outputs cannot be cached."""
        if not hasattr(dataset, "__len__"):
            name = type(dataset).__name__
            raise ValueError(f"Outputs for a streaming dataset (`{name}`) cannot be cached. Load all rows, or {OFF}.")
        collator = self.live.prepare(dataset, collator)
        model = extract_model_from_parallel(self.model, keep_torch_compile=False)
        with random_state_kept():
            sources = self._sources(model, collator)
            digest = digest_of(sources)
            folder = self.folder / digest
            folder.mkdir(parents=True, exist_ok=True)
            is_first = PartialState().is_local_main_process
            self.cache = TeacherCache(folder, digest, verify=is_first)
            keys, order = self._scan(dataset)
            if len(self.cache.missing(keys)):
                # The main process shows the progress, so let it take the lock first.
                if not is_first:
                    time.sleep(1)
                with self.cache.locked():
                    rows = order[np.isin(order, self.cache.missing(keys))].tolist()
                    if rows:
                        self._build(dataset, collator, sources, keys, rows)
        logger.info(f"Teacher outputs for {len(self.cache)} rows: {folder} ({self.cache.nbytes / 1e6:.0f} MB).")
        return CachingCollator(collator, self.cache)

    def outputs(self, inputs: dict[str, Any]) -> Features:
        """Remove the teacher's outputs from a batch and return them. If they are missing, run the teacher."""
        cached = inputs.pop(CACHED_OUTPUTS, None)
        if cached is None:
            return self.live.outputs(inputs)
        inputs.pop(TEACHER_INPUTS, None)
        return self.cache.layout.restore(cached, self.dtype)

    def _sources(self, model: nn.Module, collator: Callable) -> dict[str, Any]:
        """Return hashes and settings that identify the cache."""
        request = self.live.request
        teacher = list(map(hash_model, members_of(model)))
        if not isinstance(model, EnsembleTeacher):
            [teacher] = teacher
        sources = {
            "teacher": teacher,
            "teacher_class": type(model).__name__,
            "processing": hash_processing(self.processing),
            "collation": describe(collator),
            "states": request.states,
            "logits": request.logits,
            "listed": list(request.listed),
            "storage": dict(request.storage),
            "mixed_precision": self.mixed_precision,
            "format": [FORMAT, "safetensors"],
        }
        if request.top_classes is not None and request.logits:
            sources["top_classes"] = asdict(request.top_classes)
        return sources

    def _read(self, dataset: Any, rows: Sequence[int]) -> list[Any]:
        """Return rows in the collator's format."""
        if hasattr(dataset, "__getitems__"):
            examples = dataset.__getitems__(list(rows))
        else:
            examples = [dataset[row] for row in rows]
        return self.trim(examples)

    def _scan(self, dataset: Any) -> tuple[list[bytes], np.ndarray]:
        """Return the key of each row, and the row numbers from the longest to the shortest row."""
        keys = []
        lengths = []
        rows = range(len(dataset))
        for start in rows[::ROWS_AT_ONCE]:
            for feature in self._read(dataset, rows[start : start + ROWS_AT_ONCE]):
                keys.append(row_key(feature))
                lengths.append(self.length(feature))
        return keys, np.argsort(-np.array(lengths, np.int64), kind="stable")

    def _build(self, dataset: Any, collator: Callable, sources: dict, keys: list[bytes], rows: list[int]) -> None:
        def collate(batch_rows: Sequence[int]) -> dict[str, Any]:
            return self.to_device(collator(self._read(dataset, batch_rows)))

        # Choose rows evenly over all lengths, so that they represent all rows in the estimate of space.
        num_checked = min(NUM_CHECKED, len(rows))
        checked = []
        for number in range(num_checked):
            position = (2 * number + 1) * len(rows) // (2 * num_checked)
            checked.append(rows[position])
        _check_repeatable([keys[row] for row in checked], self._read(dataset, checked), collator)
        first = members_of(extract_model_from_parallel(self.model))[0]
        batch = collate(checked)
        output = self._run(batch)
        kind = kind_of(first)
        request = self.live.request
        layout = OutputLayout.of(output, request, kind.num_symbols(first), kind.label_shift)
        packed = layout.pack(output, batch, request.top_classes)
        packed_size = 0
        for row in packed:
            packed_size += sum(array.nbytes for array in row.values())
        needed = packed_size * len(rows) // len(packed)
        free = shutil.disk_usage(self.cache.folder).free
        if needed > free:
            raise OSError(
                errno.ENOSPC,
                f"The teacher's outputs need about {convert_bytes(needed)}, but only {convert_bytes(free)} are free. "
                f"Make room, choose a different `teacher_cache_dir`, compare fewer layers, or {OFF}",
                str(self.cache.folder),
            )
        logger.info(f"Caching the teacher's outputs for {len(rows)} rows, about {needed / 1e6:.0f} MB.")

        # Completed files survive a kill. The next run forms the same batches from the rest, for identical results.
        def batches() -> Iterator[tuple[list[bytes], list[dict[str, np.ndarray]]]]:
            for start in logging.tqdm(range(0, len(rows), self.batch_size), desc="Teacher cache"):
                batch_rows = rows[start : start + self.batch_size]
                batch = collate(batch_rows)
                output = self._run(batch)
                yield [keys[row] for row in batch_rows], layout.pack(output, batch, request.top_classes)
                self.progress(start + len(batch_rows), len(rows))

        self.cache.fill(layout, sources, batches())

    def _run(self, batch: Mapping[str, Any]) -> Features:
        with self.context():
            return self.live.outputs(dict(batch))


class CachingCollator:
    """Collator that adds the teacher's cached outputs to the batches of a given collator."""

    def __init__(self, collator: Callable, cache: TeacherCache) -> None:
        self.collator = collator
        self.cache = cache

    def __call__(self, features: list[Any]) -> dict[str, Any]:
        keys = [row_key(feature) for feature in features]
        batch = dict(self.collator(features))
        batch[CACHED_OUTPUTS] = self.cache.layout.assemble(self.cache.read(keys), batch)
        return batch


def random_state_kept() -> AbstractContextManager[None]:
    """Return a context at whose end the random generators of torch are restored."""
    devices = [torch.cuda.current_device()] if torch.cuda.is_available() else []
    return torch.random.fork_rng(devices)


def _check_repeatable(keys: list[bytes], features: list[Any], collator: Callable) -> None:
    """Raise `ValueError` unless rows, read a second time, have the same keys and are always collated alike."""
    first = collator(features)
    second = collator(features)
    cause = None
    if keys != [row_key(feature) for feature in features]:
        cause = "dataset returns different rows"
    for name, value in first.items():
        if isinstance(value, Tensor) and not value.equal(second[name]):
            cause = f"collator returns a different {name!r}"
            break
    if cause is not None:
        raise ValueError(
            f"The {cause} each time, so the teacher's outputs cannot be cached. Apply random transforms and masks "
            f"once, beforehand, and save the result in the rows (`dataset.map`), or {OFF}."
        )

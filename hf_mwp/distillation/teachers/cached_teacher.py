"""A teacher whose answers are on disk, asked only about rows that are not there."""

import secrets
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import PartialState
from accelerate.utils import broadcast_object_list, extract_model_from_parallel
from transformers.utils import logging

from ...models import Solver
from ...store.files import write_whole
from ...store.finished_folder import digest_of
from ...store.row_store import FORMAT
from ..features import Features
from .cache.building import build_cache, check_space
from .cache.checks import OFF, check_collation, check_evaluating, check_rows, check_teacher, random_state_kept
from .cache.fingerprint import describe_collator, hash_model, hash_processing, row_key
from .cache.output_layout import OutputLayout
from .cache.teacher_cache import TeacherCache
from .ensemble_teacher import EnsembleTeacher, members_of
from .live_teacher import LiveTeacher


logger = logging.get_logger(__name__)

CACHED_OUTPUTS = "cached_teacher_outputs"
NUM_CHECKED = 8  # rows that are read, collated and asked about before all others
ROWS_AT_ONCE = 1000
SECONDS_BETWEEN_REPORTS = 30.0


class CachedTeacher:
    """
    A teacher that is run once over the rows of a data set; what it says is kept in a [`TeacherCache`] and comes with
    the batches of [`CachingCollator`], the attribute `collator`.

    The main process of each machine builds the cache, the others wait; processes that do not know of each other take
    turns by the folder's lock.

    Args:
        live ([`LiveTeacher`]): The teacher, and what is asked of it.
        dataset: The rows, with a length and with random access.
        collator (`Callable`): From rows to a batch.
        folder (`Path`): Where caches are, each in a folder of its own.
        trim (`Callable`): From rows as the data set gives them to rows as the collator receives them.
        prepare (`Callable`): From a batch to one on the teacher's device, in its precision.
        context (`Callable`): Makes the context in which it is asked (mixed precision).
        length (`Callable`): The length of a row; rows are asked about by falling length, `batch_size` at once.
        processing (processor or tokenizer), mixed_precision (`str`): Make the answers what they are, too.
        dtype (`torch.dtype`): The student's, in which the answers are given.
        progress (`Callable`): Called with the rows done and their total; returns whether anybody was told. If not, it
            is logged.

    Raises:
        CacheError: the folder holds something else.
        OSError: the disk has not enough room.
        ValueError: outputs of this teacher for this data cannot be cached.
    """

    def __init__(
        self,
        live: LiveTeacher,
        dataset: Any,
        collator: Callable[[list], Mapping[str, Any]],
        folder: Path,
        *,
        trim: Callable[[list], list] = list,
        prepare: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict,
        context: Callable[[], Any] = torch.no_grad,
        length: Callable[[Any], int] = len,
        batch_size: int = 8,
        processing: Any = None,
        mixed_precision: str = "no",
        dtype: torch.dtype = torch.float32,
        progress: Callable[[int, int], bool] | None = None,
    ) -> None:
        if not hasattr(dataset, "__len__") or not hasattr(dataset, "__getitem__"):
            raise ValueError(
                f"Outputs for a streaming data set (`{type(dataset).__name__}`) cannot be cached: it has "
                f"no length, and its rows cannot be read in another order. Load it whole, or {OFF}."
            )
        self.live, self.dataset, self.own_collator = live, dataset, collator
        self.trim, self.prepare, self.context, self.length = trim, prepare, context, length
        self.batch_size, self.dtype, self.progress = batch_size, dtype, progress
        self.cache: TeacherCache | None = None
        self._reported = time.monotonic()
        self.model = extract_model_from_parallel(live.model)
        check_evaluating(self.model)
        with random_state_kept():
            made_from = self._made_from(processing, mixed_precision)
            digest = digest_of(made_from)
            complete = partial(self._complete, folder / digest, digest, made_from, *self._scan())
            if PartialState().num_processes == 1:
                complete()
            else:
                self._complete_together(complete, folder / digest, digest)
        size = self.cache.nbytes / 1e6
        logger.info(f"The teacher's outputs for {len(self.cache)} rows are in {folder / digest} ({size:.0f} MB).")
        self.collator = CachingCollator(collator, self.cache)

    def outputs(self, inputs: dict[str, Any]) -> Features:
        """What the teacher says to a batch; taken out of it if it comes with it, asked for otherwise."""
        cached = inputs.pop(CACHED_OUTPUTS, None)
        return self.live.outputs(inputs) if cached is None else self.cache.layout.restore(cached, self.dtype)

    def _made_from(self, processing: Any, mixed_precision: str) -> dict[str, Any]:
        request = self.live.request
        digests = [hash_model(each) for each in members_of(self.model)]
        return {
            "teacher": digests if isinstance(self.model, EnsembleTeacher) else digests[0],
            "teacher_class": type(self.model).__name__,
            "processing": hash_processing(processing),
            "collation": describe_collator(self.own_collator),
            "states": request.states,
            "logits": request.logits,
            "top_k": request.top_k,
            "temperature": request.temperature,
            "mixed_precision": mixed_precision,
            "dtype": "float16",
            "format": FORMAT,
            # Only where there is one, so that other caches keep their names.
            **({"label_offset": request.offset} if request.offset else {}),
        }

    # Rows

    def _read(self, rows: Sequence[int]) -> list[Any]:
        """Rows as the collator receives them."""
        whole = getattr(self.dataset, "__getitems__", None)
        return self.trim([self.dataset[row] for row in rows] if whole is None else whole(list(rows)))

    def _scan(self) -> tuple[list[bytes], np.ndarray]:
        """The key of each row, and the rows' numbers by falling length."""
        keys, lengths, count = [], [], len(self.dataset)
        for start in range(0, count, ROWS_AT_ONCE):
            for feature in self._read(range(start, min(start + ROWS_AT_ONCE, count))):
                keys.append(row_key(feature))
                lengths.append(self.length(feature))
        return keys, np.argsort(-np.array(lengths, np.int64), kind="stable")

    def _collate(self, rows: Sequence[int]) -> Mapping[str, Any]:
        return self.prepare(self.own_collator(self._read(rows)))

    # Building

    def _complete(self, folder: Path, digest: str, made_from: dict, keys: list[bytes], order: np.ndarray) -> None:
        """Opens the cache, and builds what it lacks."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = (
                f"the teacher cache cannot be kept in {folder} ({error.strerror}): choose another `teacher_cache_dir`"
            )
            raise OSError(error.errno, reason) from error
        self.cache = TeacherCache(folder, digest)
        if not len(self.cache.missing(keys)):
            return
        with self.cache.locked():
            rows = order[np.isin(order, self.cache.missing(keys))].tolist()
            if rows:
                self._build(made_from, keys, rows)

    def _build(self, made_from: dict, keys: list[bytes], rows: list[int]) -> None:
        # Evenly over the lengths, so that they stand for all in the estimate of space.
        count = min(NUM_CHECKED, len(rows))
        checked = [rows[(2 * number + 1) * len(rows) // (2 * count)] for number in range(count)]
        features = self._read(checked)
        check_rows([keys[row] for row in checked], [row_key(feature) for feature in features])
        check_collation(self.own_collator(features), self.own_collator(features))
        first = members_of(self.model)[0]
        symbols = first.vocabulary.num_symbols if isinstance(first, Solver) else None
        make_layout = partial(OutputLayout.of, request=self.live.request, num_symbols=symbols)
        layout, sizes = check_teacher(make_layout, self._ask, self._collate, checked)
        needed = sum(sizes) * len(rows) // len(sizes)
        check_space(self.cache, needed)
        folder = self.cache.folder
        others = sum(path.parent != folder for path in folder.parent.glob("*/manifest.json"))
        logger.info(
            f"Caching the teacher's outputs for {len(rows)} rows, about {needed / 1e6:.0f} MB. {folder.parent} holds "
            f"{others} caches of other teachers, data or layers; those that are no longer needed can be removed."
        )
        build_cache(
            self.cache,
            layout,
            made_from,
            self._ask,
            self._collate,
            keys,
            rows,
            self.batch_size,
            needed=needed,
            progress=self._report,
        )

    def _ask(self, batch: Mapping[str, Any]) -> Features:
        with self.context():
            return self.live.outputs(batch)

    def _report(self, done: int, total: int) -> None:
        told = self.progress is not None and self.progress(done, total)
        if not told and (done == total or time.monotonic() - self._reported > SECONDS_BETWEEN_REPORTS):
            self._reported = time.monotonic()
            logger.info(f"Teacher cache: {done} of {total} rows")

    # Several processes

    def _complete_together(self, complete: Callable[[], None], folder: Path, digest: str) -> None:
        """
        Completes the cache on the main process of each machine; the others wait for a file that says it is done, or
        what went wrong. A barrier of the process group would break off after its time limit, long before a large cache
        is built.
        """
        processes = PartialState()
        token = broadcast_object_list([secrets.token_hex(8)])[0]
        # Not in the cache's folder, which may be what is at fault.
        done = Path(tempfile.gettempdir()) / f"hf_mwp-teacher-cache-{token}"
        if processes.is_local_main_process:
            fault = ""
            try:
                complete()
            except BaseException as error:
                fault = str(error) or type(error).__name__
                raise
            finally:
                write_whole(done, fault)
        else:
            while not done.is_file():
                time.sleep(0.1)
            fault = done.read_text("utf-8")
            if fault:
                raise RuntimeError(f"The main process did not build the teacher cache: {fault}")
            self.cache = TeacherCache(folder, digest, verify=False)
        processes.wait_for_everyone()
        if processes.is_local_main_process:
            done.unlink(missing_ok=True)


class CachingCollator:
    """Wraps a collator so that batches bring the teacher's outputs along, which the cache has for all rows."""

    def __init__(self, collator: Callable, cache: TeacherCache) -> None:
        self.collator, self.cache = collator, cache

    def __call__(self, features: list[Any]) -> dict[str, Any]:
        keys = [row_key(feature) for feature in features]
        batch = dict(self.collator(features))
        batch[CACHED_OUTPUTS] = self.cache.assemble(keys, batch)
        return batch

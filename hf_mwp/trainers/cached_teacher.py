"""Gives a distillation its teacher's outputs from a cache, and builds the cache where it lacks rows."""

from __future__ import annotations

import secrets
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from accelerate.utils import broadcast_object_list
from transformers.trainer_utils import has_length
from transformers.utils import logging

from ..distillation.cache_building import build_cache, check_space
from ..distillation.cache_checks import (
    OFF,
    check_collation,
    check_evaluating,
    check_rows,
    check_teacher,
    random_state_kept,
)
from ..distillation.cache_fingerprint import (
    describe_collator,
    fingerprint,
    hash_model,
    hash_processing,
    row_key,
)
from ..distillation.cached_output import CachedOutput
from ..distillation.output_layout import OutputLayout
from ..distillation.teacher_cache import TeacherCache
from ..files import write_whole


if TYPE_CHECKING:
    from .distillation_trainer import DistillationTrainer

logger = logging.get_logger(__name__)

CACHED_OUTPUTS = "cached_teacher_outputs"
NUM_CHECKED = 8  # rows that are read, collated and asked about before all others
ROWS_AT_ONCE = 1000
SECONDS_BETWEEN_REPORTS = 30.0


class CachedTeacher:
    """
    The [`TeacherCache`] of a trainer.

    The main process of each machine builds it, the others wait; processes that do not know of each other take turns
    by the folder's lock. While it is built, callbacks that have a method `on_teacher_cache(args, state, control,
    done, total)` are told of the progress; if none has, it is logged.

    Args:
        trainer ([`DistillationTrainer`]): Its models, data set, collator and arguments say what is cached.
    """

    def __init__(self, trainer: DistillationTrainer) -> None:
        self.trainer = trainer
        self.cache: TeacherCache | None = None
        self._reported = time.monotonic()

    def prepare(self) -> CachingCollator:
        """
        Opens the cache, after it has been built or completed.

        Returns:
            [`CachingCollator`]: in place of the trainer's own.

        Raises:
            CacheError: the folder holds something else.
            OSError: the disk has not enough room.
            ValueError: outputs of this teacher for this data cannot be cached.
        """
        trainer, args = self.trainer, self.trainer.args
        dataset = trainer.train_dataset
        if not has_length(dataset) or not hasattr(dataset, "__getitem__"):
            raise ValueError(
                f"Outputs for a streaming data set (`{type(dataset).__name__}`) cannot be cached: it has "
                f"no length, and its rows cannot be read in another order. Load it whole, or {OFF}."
            )
        teacher = trainer.accelerator.unwrap_model(trainer.teacher_model)
        check_evaluating(teacher)
        with random_state_kept():
            made_from = self._made_from(teacher)
            digest = fingerprint(made_from)
            folder = Path(args.teacher_cache_dir or Path(args.output_dir) / "teacher_cache") / digest
            keys, order = self._scan(dataset)
            if trainer.accelerator.num_processes == 1:
                self._complete(folder, digest, made_from, keys, order)
            else:
                self._complete_together(folder, digest, made_from, keys, order)
        size = self.cache.nbytes / 1e6
        logger.info(f"The teacher's outputs for {len(self.cache)} rows are in {folder} ({size:.0f} MB).")
        return CachingCollator(trainer.data_collator, self.cache)

    def outputs(self, cached: dict[str, torch.Tensor]) -> CachedOutput:
        """The teacher's outputs for a batch, from what the collator put into it."""
        dtype = next(self.trainer.model.parameters()).dtype
        return self.cache.layout.restore(cached, dtype)

    # What is cached

    def _state_names(self, teacher) -> list[str]:
        layers = getattr(teacher.config, "bottleneck_layers", None) if hasattr(teacher, "config") else None
        return sorted(
            {
                f"bottleneck_{list(layers).index(layer)}" if narrow else f"hidden_{layer}"
                for layer, narrow in self.trainer._teacher_states()
            }
        )

    def _made_from(self, teacher) -> dict[str, Any]:
        trainer, args = self.trainer, self.trainer.args
        loss = trainer.prediction_loss
        top_k = args.cache_top_k if trainer._uses_soft_labels else None
        return {
            "teacher": hash_model(teacher),
            "teacher_class": type(teacher).__name__,
            "processing": hash_processing(trainer.processing_class),
            "collation": describe_collator(trainer.data_collator),
            "states": self._state_names(teacher),
            "logits": trainer._uses_soft_labels,
            "top_k": top_k,
            "temperature": None if top_k is None else float(getattr(loss, "temperature", 1.0)),
            "mixed_precision": trainer.accelerator.mixed_precision,
            "dtype": "float16",
            # Only where there is one, so that other caches keep their names.
            **({"label_offset": trainer._label_offset} if trainer._label_offset else {}),
        }

    # Rows

    def _read(self, dataset: Any, rows: Sequence[int]) -> list[Any]:
        """Rows as the trainer's collator receives them."""
        whole = getattr(dataset, "__getitems__", None)
        features = [dataset[row] for row in rows] if whole is None else whole(list(rows))
        return self.trainer._get_collator_with_removed_columns(_same)(features)

    def _scan(self, dataset: Any) -> tuple[np.ndarray, np.ndarray]:
        """The key of each row `(rows, 2)`, and the rows' numbers by falling length."""
        keys, lengths = np.zeros((len(dataset), 2), np.uint64), np.zeros(len(dataset), np.int64)
        column, main = self.trainer.args.length_column_name, self.trainer.model.main_input_name
        for start in range(0, len(dataset), ROWS_AT_ONCE):
            rows = range(start, min(start + ROWS_AT_ONCE, len(dataset)))
            for row, feature in zip(rows, self._read(dataset, rows), strict=True):
                keys[row] = row_key(feature)
                if isinstance(feature, dict):
                    text = feature.get(main)
                    lengths[row] = feature.get(column) or (len(text) if hasattr(text, "__len__") else 0)
        return keys, np.argsort(-lengths, kind="stable")

    def _collate(self, rows: Sequence[int]) -> dict[str, Any]:
        trainer = self.trainer
        return trainer._prepare_inputs(trainer.data_collator(self._read(trainer.train_dataset, rows)))

    # Building

    def _complete(self, folder: Path, digest: str, made_from: dict, keys: np.ndarray, order: np.ndarray) -> None:
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
            # Another process may have been at it while this one waited.
            self.cache = TeacherCache(folder, digest)
            rows = order[np.isin(order, self.cache.missing(keys))].tolist()
            if rows:
                self._build(made_from, keys, rows)

    def _build(self, made_from: dict, keys: np.ndarray, rows: list[int]) -> None:
        trainer = self.trainer
        teacher = trainer.accelerator.unwrap_model(trainer.teacher_model)
        # Evenly over the lengths, so that they stand for all in the estimate of space.
        count = min(NUM_CHECKED, len(rows))
        checked = [rows[(2 * number + 1) * len(rows) // (2 * count)] for number in range(count)]
        features = self._read(trainer.train_dataset, checked)
        check_rows(keys[checked], [row_key(feature) for feature in features])
        check_collation(trainer.data_collator(features), trainer.data_collator(features))

        def make_layout(output: Any) -> OutputLayout:
            return OutputLayout.of(
                output,
                made_from["states"],
                made_from["logits"],
                num_symbols=teacher.decoder.num_symbols if trainer.is_solver else None,
                top_k=made_from["top_k"],
                temperature=made_from["temperature"] or 1.0,
                offset=trainer._label_offset,
            )

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
            trainer.args.per_device_eval_batch_size,
            needed=needed,
            progress=self._report,
        )

    def _ask(self, batch: dict[str, Any]):
        with torch.no_grad(), self.trainer.compute_loss_context_manager():
            return self.trainer._forward(self.trainer.teacher_model, batch)

    def _report(self, done: int, total: int) -> None:
        trainer, told = self.trainer, False
        for callback in trainer.callback_handler.callbacks:
            if hasattr(callback, "on_teacher_cache"):
                callback.on_teacher_cache(trainer.args, trainer.state, trainer.control, done=done, total=total)
                told = True
        if not told and (done == total or time.monotonic() - self._reported > SECONDS_BETWEEN_REPORTS):
            self._reported = time.monotonic()
            logger.info(f"Teacher cache: {done} of {total} rows")

    # Several processes

    def _complete_together(
        self, folder: Path, digest: str, made_from: dict, keys: np.ndarray, order: np.ndarray
    ) -> None:
        """
        As `_complete`, on the main process of each machine; the others wait for a file that says it is done, or what
        went wrong. A barrier of the process group would break off after its time limit, long before a large cache is
        built.
        """
        accelerator = self.trainer.accelerator
        token = broadcast_object_list([secrets.token_hex(8)])[0]
        # Not in the cache's folder, which may be what is at fault.
        done = Path(tempfile.gettempdir()) / f"hf_mwp-teacher-cache-{token}"
        if accelerator.is_local_main_process:
            fault = ""
            try:
                self._complete(folder, digest, made_from, keys, order)
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
        accelerator.wait_for_everyone()
        if accelerator.is_local_main_process:
            done.unlink(missing_ok=True)


class CachingCollator:
    """
    Wraps a collator so that batches bring the teacher's outputs along.

    Args:
        collator (`Callable`): Collates the rows.
        cache ([`TeacherCache`]): Has the outputs of all of them.
    """

    def __init__(self, collator: Callable, cache: TeacherCache) -> None:
        self.collator, self.cache = collator, cache

    def __call__(self, features: list[Any]) -> dict[str, Any]:
        keys = [row_key(feature) for feature in features]
        batch = dict(self.collator(features))
        batch[CACHED_OUTPUTS] = self.cache.assemble(keys, batch)
        return batch


def _same(features: list[Any]) -> list[Any]:
    return features


__all__ = ["CACHED_OUTPUTS", "CachedTeacher", "CachingCollator"]

"""Computation of the teacher outputs that a cache lacks."""

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....store.files import FULL
from ....store.row_store import MAX_MAPPED
from .output_layout import OutputLayout
from .teacher_cache import TeacherCache


# Files of this size; more rows than that are not lost when a build is killed. Larger ones where there would be so many
# that a process does not have all of them open.
SHARD_BYTES = 64 << 20

SPARE = 1.05


def check_space(cache: TeacherCache, needed: int) -> None:
    """Raise `OSError` if the disk has no room for `needed` further bytes."""
    free = shutil.disk_usage(cache.folder).free
    if needed * SPARE > free:
        raise OSError(
            errno.ENOSPC,
            f"The outputs of the teacher need about {_size(needed)}, and {_size(free)} are free. Make room, choose "
            "another `teacher_cache_dir`, cache fewer classes (`cache_top_k`), compare fewer layers, or set "
            "`cache_teacher_outputs=False`",
            str(cache.folder),
        )


def build_cache(
    cache: TeacherCache,
    layout: OutputLayout,
    made_from: Mapping[str, Any],
    ask: Callable[[Mapping[str, Any]], Any],
    collate: Callable[[Sequence[int]], Mapping[str, Any]],
    keys: Sequence[bytes],
    rows: Sequence[int],
    batch_size: int,
    needed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """
    Add the teacher's outputs for missing rows to a cache, by [`TeacherCache.building`] with `layout` and `made_from`.
    The caller holds the cache's lock.

    Rows are computed in the given order (by length, so that there is little padding) and in full batches. Completed
    files survive a kill, and the next run forms the same batches from the rest, so that results are equal to the last
    bit. `ask` computes the teacher's output for a batch and `collate` builds a batch from row numbers. `keys` has the
    keys of all rows of the data set, `rows` the numbers of the missing ones, which need about `needed` bytes.
    """
    before, layout = len(cache), cache.layout or layout
    try:
        with cache.building(layout, made_from):
            for start in range(0, len(rows), batch_size):
                chosen = rows[start : start + batch_size]
                batch = collate(chosen)
                packed = layout.pack(ask(batch), batch)
                cache.add([keys[row] for row in chosen], packed, max(SHARD_BYTES, needed // MAX_MAPPED))
                if progress is not None:
                    progress(start + len(chosen), len(rows))
    except OSError as error:
        if error.errno not in FULL:
            raise
        free = shutil.disk_usage(cache.folder).free
        raise OSError(
            error.errno,
            f"The disk was full after {len(cache) - before} of {len(rows)} rows of the teacher's outputs, which stay "
            f"({_size(free)} free, about {_size(needed)} needed in all). Make room and start again, or choose another "
            "`teacher_cache_dir`",
            str(cache.folder),
        ) from error


def _size(nbytes: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"

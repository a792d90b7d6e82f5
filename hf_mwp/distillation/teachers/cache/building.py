"""Functions that compute missing teacher outputs for a cache."""

import errno
import shutil
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ....store.files import FULL
from ....store.row_store import MAX_MAPPED
from .output_layout import OutputLayout
from .teacher_cache import TeacherCache


# Size of files, and so of the outputs that are lost if a build is killed. Files are larger if there would be too many
# to open all of them.
SHARD_BYTES = 64 << 20

SPARE = 1.05


def check_space(cache: TeacherCache, needed: int) -> None:
    """Raise `OSError` if the disk has no room for `needed` more bytes."""
    free = shutil.disk_usage(cache.folder).free
    if needed * SPARE > free:
        raise OSError(
            errno.ENOSPC,
            f"The teacher's outputs need about {_size(needed)}, but only {_size(free)} are free. Make room, choose a "
            "different `teacher_cache_dir`, cache fewer classes (`cache_top_k`), compare fewer layers, or set "
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
    Compute the teacher's outputs for missing rows and add them to a cache with [`TeacherCache.building`], to which
    `layout` and `made_from` are passed. The caller holds the cache's lock.

    Rows are computed in the given order (by length, for little padding) and in full batches. Completed files survive a
    kill. The next run forms the same batches from the remaining rows, so results are identical to the last bit. `ask`
    computes the teacher's output for a batch, and `collate` builds a batch from row numbers. `keys` has the keys of
    all rows of the dataset, `rows` the numbers of the missing rows, which need about `needed` bytes.
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
            f"The disk was full after {len(cache) - before} of {len(rows)} rows of the teacher's outputs, which are "
            f"kept ({_size(free)} are free, about {_size(needed)} are needed in all). Make room and start again, or "
            "choose a different `teacher_cache_dir`",
            str(cache.folder),
        ) from error


def _size(nbytes: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if nbytes < 1000:
            return f"{nbytes:.0f} {unit}"
        nbytes /= 1000
    return f"{nbytes:.1f} GB"

"""Error for a full disk, which writers report in many ways."""

from __future__ import annotations

import errno
import os
import re
import shutil
from pathlib import Path


# Of the disk, of a user's share of it, of a file's size.
FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
# safetensors gives the system's words and no number; the archives of `torch.save` only notice that too little arrived.
_SAID = re.compile(
    "|".join(re.escape(os.strerror(number)) for number in sorted(FULL))
    + r"|PytorchStreamWriter failed|unexpected pos \d+ vs \d+"
)


class DiskFullError(OSError):
    """Error for a full disk. The message names the folder, the free bytes, what was kept and what to do."""

    def __init__(self, folder: str | os.PathLike, remedy: str):
        folder = Path(folder)
        there = next(each for each in (folder, *folder.absolute().parents) if each.is_dir())
        free = shutil.disk_usage(there).free
        super().__init__(errno.ENOSPC, f"The disk is full: {free:,} bytes are free at {folder}. {remedy}")

    def __str__(self) -> str:
        return self.strerror


def means_full_disk(error: BaseException | None) -> bool:
    """Return whether a writer met a full disk and does not say where, or, as `torch.save`, not even that."""
    if isinstance(error, OSError):
        return error.errno in FULL and error.strerror == os.strerror(error.errno)
    return isinstance(error, Exception) and not isinstance(error, ValueError) and bool(_SAID.search(str(error)))

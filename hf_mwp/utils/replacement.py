"""Replacement of files in a folder, which does not lose them if the process is killed or the disk is full."""

import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from .files import find_names, read_json, write_json


# Folders inside the folder whose files are replaced: with incomplete new files, and with all new files.
UNFINISHED = ".unfinished"
COMPLETE = ".complete"
# Names of the old files to delete.
OUTDATED = "outdated.json"
# Moved last, so that a folder without it is incomplete.
LAST = "config.json"


@contextmanager
def replacing_files(folder: Path, find_outdated: Callable[[Path], Iterable[str]]) -> Iterator[Path]:
    """Yield an empty folder for new files. If the context ends without an error, they are moved to `folder`, and files
    of `folder` with the patterns `find_outdated(new_folder)` that were not replaced are deleted. Until then, `folder`
    keeps its old files. If the process is killed while the files are moved, [`finish_replacement`] moves the others.
    """
    unfinished = folder / UNFINISHED
    _remove(unfinished)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        outdated = set(find_names(folder, find_outdated(unfinished)))
        outdated.difference_update(os.listdir(unfinished))
        write_json(unfinished / OUTDATED, {"names": sorted(outdated)})
        unfinished.rename(folder / COMPLETE)
    finally:
        _remove(unfinished)
    finish_replacement(folder)


def is_interrupted(folder: Path) -> bool:
    """Return whether a replacement of files in a folder was interrupted, or is running, when all were written."""
    return (folder / COMPLETE).is_dir()


def finish_replacement(folder: Path) -> None:
    """Move the remaining new files of an interrupted [`replacing_files`] to a folder, and delete outdated files. The
    caller must hold the folder's lock."""
    if not is_interrupted(folder):
        return
    complete = folder / COMPLETE
    names = [name for name in os.listdir(complete) if name not in (LAST, OUTDATED)]
    record = read_json(complete / OUTDATED) or {}
    if (complete / LAST).exists():
        # Until all files are moved, the folder must not load: its files may belong to two models.
        (folder / LAST).unlink(missing_ok=True)
        names.append(LAST)
    for name in record.get("names", ()):
        _remove(folder / name)
    for name in names:
        if (folder / name).is_dir():
            _remove(folder / name)
        (complete / name).replace(folder / name)
    _remove(complete)


def _remove(path: Path) -> None:
    """Delete a file, link or folder, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)

"""Atomic writes, content digests and short names of local paths."""

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from .usage_error import UsageError


# Errors of the system for which a disk has no room, or none for this user or file.
NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path beside `path` that no other process uses. The file written there replaces `path` if the
    context ends without an error, otherwise it is deleted. Parent folders are created."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = _new_path(path.parent, path.name)
    try:
        yield unfinished
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def write_atomically(path: str | Path, lines: str | Iterable[str]) -> None:
    """Write a UTF-8 text file atomically, and create its parent folders. Lone surrogates are escaped as in JSON."""
    if isinstance(lines, str):
        lines = [lines]
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.writelines(lines)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def writing_weights(folder: str | Path) -> Iterator[None]:
    """Context manager for code that writes safetensors files to a folder. Raises `UsageError` if disk space or memory
    is missing. Afterwards, the umask decides who may read the files; the safetensors library allows only their owner
    to read them."""
    # Solving without PyTorch does not need this package.
    from safetensors import SafetensorError

    folder = Path(folder)
    try:
        yield
    except (MemoryError, OSError, RuntimeError, SafetensorError) as error:
        remedy = _remedy(error)
        if remedy is None and not isinstance(error, SafetensorError):
            raise
        fault = str(error).rstrip(".") or "out of memory"
        if remedy is None:
            remedy = "Check the disk, or choose another folder."
        raise UsageError(f"The weights cannot be written to {folder}: {fault}. {remedy}") from error
    weights = [path for path in folder.glob("*.safetensors") if path.is_file()]
    if weights:
        mode = _usual_mode(folder)
        for path in weights:
            path.chmod(mode)


def _remedy(error: Exception) -> str | None:
    """Return what to do about missing disk space or memory, or `None` for another error."""
    text = str(error)
    # PyTorch raises `RuntimeError` if it can neither allocate memory nor write a file.
    if isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "alloc" in text):
        return "Close other programs to free memory, and try again."
    is_full = getattr(error, "errno", None) in NO_SPACE or any(f"os error {code}" in text for code in NO_SPACE)
    if is_full or "inline_container" in text or "failed writing file" in text:
        return "Free disk space, or choose another folder."
    return None


def _usual_mode(folder: Path) -> int:
    """Return the permissions of a file that is created in a folder."""
    new_file = _new_path(folder, "mode")
    try:
        new_file.touch()
        return stat.S_IMODE(new_file.stat().st_mode)
    finally:
        new_file.unlink(missing_ok=True)


def _new_path(folder: Path, name: str) -> Path:
    return folder / f"{name}.{uuid4().hex[:8]}.part"


def write_json_lines(path: str | Path, records: Iterable[Any]) -> None:
    """Write a JSON Lines file atomically."""
    write_atomically(path, (json.dumps(record, ensure_ascii=False) + "\n" for record in records))


def write_json(path: str | Path, content: Any) -> None:
    """Write an indented JSON file atomically; values that JSON does not support are converted with `str`."""
    write_atomically(path, json.dumps(content, indent=2, ensure_ascii=False, default=str) + "\n")


def read_json(path: str | Path) -> dict[str, Any] | None:
    """Return the mapping in a JSON file, or `None` if it cannot be read."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return content if isinstance(content, dict) else None


def find_names(folder: Path, patterns: Iterable[str]) -> list[str]:
    """Return the names of the files in a folder that have one of the patterns, sorted for each pattern."""
    names = []
    for pattern in patterns:
        names += sorted(path.name for path in folder.glob(pattern))
    return names


def remove_folder(path: str | Path) -> None:
    """Remove a folder with its contents. If the path is a link, only the link is removed."""
    path = Path(path)
    if path.is_symlink():
        path.unlink()
    else:
        shutil.rmtree(path)


def content_digest(path: str | Path) -> str:
    """Return a digest of a file, or of the names and contents of all files under a folder."""
    path = Path(path)
    digest = hashlib.blake2b(digest_size=16)
    files = [path]
    if not path.is_file():
        files = sorted(file for file in path.rglob("[!.]*") if file.is_file())
    for file in files:
        state = file.stat()
        digest.update(str(file.relative_to(path)).encode())
        digest.update(_file_digest(file.absolute(), state.st_size, state.st_mtime_ns))
    return digest.hexdigest()


@lru_cache(maxsize=4096)
def _file_digest(path: Path, size: int, time: int) -> bytes:
    """Return the digest of a file, cached by size and time because several stages may use the same file."""
    with path.open("rb") as content:
        return hashlib.file_digest(content, "blake2b").digest()


def shorten_paths(value: Any) -> Any:
    """Shorten local paths to their last component, also in lists and mappings. Hub ids have at most one slash."""
    if isinstance(value, (list, tuple)):
        return [shorten_paths(item) for item in value]
    if isinstance(value, dict):
        return {key: shorten_paths(item) for key, item in value.items()}
    if not isinstance(value, str):
        return value
    tagger = "ltp:" if value.startswith("ltp:") else ""
    path = value.removeprefix(tagger)
    # Unlike `Path.exists`, `os.path.exists` does not fail for a text that is too long for a path.
    is_local = path.startswith(("~", "./", "../")) or path.count("/") > 1 or os.path.exists(path)
    has_folder = "/" in path or os.sep in path
    if has_folder and (is_local or os.path.isabs(path)):
        return tagger + Path(path).name
    return value

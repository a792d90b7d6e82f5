"""A short name for all that a result depends on."""

import hashlib
from collections.abc import Iterable
from pathlib import Path

from .errors import ProblemError


def fingerprint_of(facts: Iterable[str], files: Iterable[Path] = ()) -> str:
    """
    16 hexadecimal digits that change with any fact (versions, settings) and with the name or content of any file;
    `ProblemError` if a file cannot be read.
    """
    digest = hashlib.sha256("\0".join(facts).encode())
    for path in files:
        try:
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").digest()
        except OSError as error:
            raise ProblemError(f"{path}: the file cannot be read: {error.strerror or error}") from error
        digest.update(path.name.encode() + b"\0" + content)
    return digest.hexdigest()[:16]

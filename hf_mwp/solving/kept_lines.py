"""What takes long to compute, kept in a file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..store.files import write_json_lines


def kept_lines(path: Path | None, make: Callable[[], Iterable[Any]]) -> list[Any]:
    """The lines of a JSONL file, made and written if it is not there; made alone without a file."""
    if path is None:
        return list(make())
    if not path.is_file():
        write_json_lines(path, make())
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]

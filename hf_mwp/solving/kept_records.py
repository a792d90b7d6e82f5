"""On-disk cache for expensive results (one JSON record per problem), filled by one or several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ..problems import MathWordProblem
from ..store.files import write_json
from ..store.finished_folder import digest_of
from ..store.runs.main_process import process_place, wait_for_all


Problem = MathWordProblem | Mapping[str, Any]
AT_ONCE = 256


def kept_records(
    folder: str | Path | None,
    facts: Mapping[str, Any],
    problems: Sequence[Problem],
    make: Callable[[Sequence[Problem]], Iterable[Any]],
    at_once: int = AT_ONCE,
) -> Iterator[list[Any]]:
    """
    Yield the records of chunks of `at_once` problems. `make` computes a JSON record for each problem of a chunk. If
    `folder` is given, the records of each chunk are cached there, in a file that is named after `facts` and the
    problems. Processes under `accelerate launch` or `torchrun` share the work: each computes some chunks, and all
    processes yield all records, in the order of the problems.
    """
    chunks = [problems[start : start + at_once] for start in range(0, len(problems), at_once)]
    if folder is None:
        yield from (list(make(chunk)) for chunk in chunks)
        return
    fields = [[each if isinstance(each, Mapping) else asdict(each) for each in chunk] for chunk in chunks]
    paths = [Path(folder) / f"{digest_of({'facts': facts, 'problems': each})[:32]}.json" for each in fields]
    rank, processes = process_place()
    for number, (path, chunk) in enumerate(zip(paths, chunks, strict=True)):
        if number % processes == rank and not path.exists():
            write_json(path, {"records": list(make(chunk))})
        if processes == 1:
            yield _read(path)
    if processes > 1:
        wait_for_all()
        yield from map(_read, paths)


def _read(path: Path) -> list[Any]:
    return json.loads(path.read_text("utf-8"))["records"]


def join_records(*args, **kwargs) -> list[Any]:
    """Return the records of all chunks of [`kept_records`] as a single list."""
    return list(chain.from_iterable(kept_records(*args, **kwargs)))

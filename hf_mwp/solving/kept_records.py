"""On-disk cache for expensive results (one JSON record per problem), filled by one or several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
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
) -> list[Any]:
    """
    Return a record for each problem. `make` computes the JSON records of a chunk of `at_once` problems. If `folder` is
    given, the records of each chunk are cached there, in a file that is named after `facts` and the problems.
    Processes under `accelerate launch` or `torchrun` share the work: each computes some chunks, and all processes
    return all records.
    """
    chunks = [problems[start : start + at_once] for start in range(0, len(problems), at_once)]
    if folder is None:
        return [record for chunk in chunks for record in make(chunk)]
    fields = [[each if isinstance(each, Mapping) else asdict(each) for each in chunk] for chunk in chunks]
    paths = [Path(folder) / f"{digest_of({'facts': facts, 'problems': each})}.json" for each in fields]
    rank, processes = process_place()
    for number, (path, chunk) in enumerate(zip(paths, chunks, strict=True)):
        if number % processes == rank and not path.exists():
            write_json(path, {"records": list(make(chunk))})
    wait_for_all()
    return [record for path in paths for record in json.loads(path.read_text("utf-8"))["records"]]

"""On-disk cache for expensive results (one JSON record per problem), filled by one or several processes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any

from ..problems import MathWordProblem
from ..store.finished_folder import digest_of
from ..store.row_store import MANIFEST, RowStore
from ..store.runs.main_process import process_place, wait_for_all


Problem = MathWordProblem | Mapping[str, Any]


def kept_records(
    folder: str | Path | None,
    facts: Mapping[str, Any],
    problems: Sequence[Problem],
    make: Callable[[Sequence[Problem]], Iterable[Any]],
    at_once: int,
) -> Iterator[list[Any]]:
    """
    Yield the records of chunks of problems. `make` computes a JSON record for each problem of a chunk. If `folder` is
    given, records are cached there, separately for each value of `facts`. Processes under `accelerate launch` or
    `torchrun` share the work: each computes some chunks, and all yield all records, in the order of the problems.
    """
    rank, processes = process_place()
    if folder is not None and processes > 1:
        at_once = max(1, min(at_once, -(-len(problems) // processes)))
    chunks = [problems[start : start + at_once] for start in range(0, len(problems), at_once)]
    if folder is None:
        yield from (list(make(chunk)) for chunk in chunks)
        return
    kept = _KeptRecords(Path(folder), digest_of(facts), rank)
    fields = [[each if isinstance(each, Mapping) else asdict(each) for each in chunk] for chunk in chunks]
    keys = [[bytes.fromhex(digest_of(each)) for each in chunk] for chunk in fields]
    mine = [processes == 1 or number % processes == rank for number in range(len(chunks))]
    with kept.writing([key for own, is_mine in zip(keys, mine, strict=True) if is_mine for key in own]):
        for chunk, own, is_mine in zip(chunks, keys, mine, strict=True):
            if is_mine:
                kept.make(chunk, own, make)
            if processes == 1:
                yield kept.read(own)
    if processes > 1:
        wait_for_all()
        kept = _KeptRecords(Path(folder), digest_of(facts), rank)
        yield from (kept.read(own) for own in keys)


class _KeptRecords:
    """Records by problem key, in the store of this process and the read-only stores of other processes."""

    def __init__(self, folder: Path, fingerprint: str, rank: int) -> None:
        name = fingerprint[:16]
        own = folder / (f"{name}-{rank}" if rank else name)
        others = [path.parent for path in sorted(folder.glob(f"{name}*/{MANIFEST}")) if path.parent != own]
        self.own, *self.others = (RowStore(path, fingerprint) for path in (own, *others))

    def missing(self, keys: Sequence[bytes]) -> list[int]:
        """Return the indices of the keys that are in no store."""
        absent = self.own.missing(keys).tolist()
        for store in self.others:
            there = store.find([keys[place] for place in absent]) >= 0
            absent = [place for place, found in zip(absent, there, strict=True) if not found]
        return absent

    def writing(self, keys: Sequence[bytes]) -> ExitStack:
        """Return a context for adding records. It locks the store of this process if a key is missing."""
        import pyarrow

        stack = ExitStack()
        if self.missing(keys):
            stack.enter_context(self.own.locked())
            columns = {"key": pyarrow.binary(16), "record": pyarrow.string()}
            stack.enter_context(self.own.writing(pyarrow.schema(columns)))
        return stack

    def make(self, problems: Sequence[Problem], keys: Sequence[bytes], make: Callable) -> None:
        """Compute and store the missing records."""
        if missing := self.missing(keys):
            records = [json.dumps(record) for record in make([problems[place] for place in missing])]
            self.own.append({"key": [keys[place] for place in missing], "record": records})
            self.own.complete()

    def read(self, keys: Sequence[bytes]) -> list[Any]:
        """Return the records with the given keys."""
        found: dict[int, Any] = {}
        for store in (self.own, *self.others):
            numbers = store.find(keys)
            places = [place for place in range(len(keys)) if numbers[place] >= 0 and place not in found]
            rows = store.rows([numbers[place] for place in places], ["record"])
            found |= {place: json.loads(row["record"]) for place, row in zip(places, rows, strict=True)}
        return [found[place] for place in range(len(keys))]


def join_records(*args, **kwargs) -> list[Any]:
    """Return the records of all chunks of [`kept_records`] as a single list."""
    return list(chain.from_iterable(kept_records(*args, **kwargs)))

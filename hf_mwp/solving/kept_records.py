"""Cache of expensive records in a row store."""

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
from ..store.row_store import RowStore


def kept_records(
    folder: str | Path | None,
    facts: Mapping[str, Any],
    problems: Sequence[MathWordProblem],
    make: Callable[[Sequence[MathWordProblem]], Iterable[Any]],
    at_once: int,
) -> Iterator[list[Any]]:
    """
    Return what `make` gives for problems, a JSON value for each, so many at once. A folder keeps the values, apart for
    other `facts`, and they are not made again.
    """
    chunks = [problems[start : start + at_once] for start in range(0, len(problems), at_once)]
    if folder is None:
        yield from (list(make(chunk)) for chunk in chunks)
        return
    import pyarrow

    name = digest_of(facts)
    store = RowStore(Path(folder) / name[:16], name)
    columns = pyarrow.schema({"key": pyarrow.binary(16), "record": pyarrow.string()})
    keys = [[bytes.fromhex(digest_of(asdict(problem))) for problem in chunk] for chunk in chunks]
    with ExitStack() as stack:
        if len(store.missing(list(chain.from_iterable(keys)))):
            stack.enter_context(store.locked())
            stack.enter_context(store.writing(columns))
        for chunk, own in zip(chunks, keys, strict=True):
            if len(missing := store.missing(own)):
                records = [json.dumps(record) for record in make([chunk[place] for place in missing])]
                store.append({"key": [own[place] for place in missing], "record": records})
                store.complete()
            yield [json.loads(row["record"]) for row in store.rows(store.find(own), ["record"])]

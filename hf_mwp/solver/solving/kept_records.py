"""On-disk cache for expensive results (one JSON record per problem), filled by one or several processes."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.files import content_digest, write_json, write_json_lines
from hf_mwp.utils.job import digest_of
from hf_mwp.utils.main_process import is_main_process, rank_and_world_size, wait_for_all
from hf_mwp.utils.run_folder import LOCK, RunFolder
from hf_mwp.utils.usage_error import UsageError


Problems = Sequence[MathWordProblem | Mapping[str, Any]]
Rows = Sequence[Mapping[str, Any]]
Make = Callable[[Problems], Iterable[Any]]
MakeAll = Callable[[Iterable[Problems]], Iterable[tuple[int, Iterable[Any]]]]
ProgressBar = Callable[[Sequence], Iterable] | None  # wraps a list, as tqdm.tqdm does
AT_ONCE = 256


def kept_records(
    folder: str | Path,
    facts: Mapping[str, Any],
    problems: Problems,
    make: Make,
    progress: ProgressBar = None,
    at_once: int | None = None,
) -> list[Any]:
    """Return a JSON record for each problem, which `make` computes in chunks of `at_once` problems; see
    [`kept_chunks`]."""

    def make_all(chunks: Iterable[Problems]) -> Iterable[tuple[int, Iterable[Any]]]:
        return enumerate(map(make, chunks))

    return kept_chunks(folder, facts, problems, make_all, progress, at_once)


def kept_chunks(
    folder: str | Path,
    facts: Mapping[str, Any],
    problems: Problems,
    make_all: MakeAll,
    progress: ProgressBar = None,
    at_once: int | None = None,
) -> list[Any]:
    """Return a JSON record for each problem. `make_all` receives chunks of `at_once` problems (default: `AT_ONCE`),
    and yields the index of a chunk and its records, in any order. A chunk is cached in a file of `folder`, named after
    a digest of its problems and `facts`, the settings that its records depend on. Processes under `accelerate launch`
    or `torchrun` share the chunks, and all of them return all records. `progress` wraps the list of chunks that are
    not cached."""
    size = at_once or AT_ONCE
    chunks = [problems[start : start + size] for start in range(0, len(problems), size)]
    paths = [_path_of_chunk(folder, facts, chunk) for chunk in chunks]
    # Compute the missing chunks of this process.
    rank, world_size = rank_and_world_size()
    missing_paths = []
    missing_chunks = []
    for path, chunk in list(zip(paths, chunks, strict=True))[rank::world_size]:
        if not path.exists():
            missing_paths.append(path)
            missing_chunks.append(chunk)
    steps: Iterable[Any] = missing_paths
    if progress is not None:
        steps = progress(missing_paths)
    for _, (index, records) in zip(steps, make_all(missing_chunks), strict=True):
        write_json(missing_paths[index], {"records": list(records)})
    wait_for_all()
    records = []
    for path in paths:
        records += json.loads(path.read_text("utf-8"))["records"]
    return records


def _path_of_chunk(folder: str | Path, facts: Mapping[str, Any], chunk: Problems) -> Path:
    """Return the file of a chunk; see [`kept_records`]."""
    problems = [problem if isinstance(problem, Mapping) else asdict(problem) for problem in chunk]
    digest = digest_of({"facts": facts, "problems": problems})
    return Path(folder) / f".{digest}.json"


def solve_to_file(
    problems: Rows,
    solve_all: MakeAll,
    model: str,
    options: Mapping[str, Any],
    output: str | Path,
    progress: ProgressBar,
) -> None:
    """Write the answers to problems with a `text` to a JSON Lines file, in the same order. `solve_all` answers chunks
    of problems, see [`kept_chunks`]. A killed run resumes if `model` and `options` are unchanged. Raises `UsageError`
    if the file exists, or another run writes to it."""
    output = Path(output)
    used = [_digest_or_name(model), _digest_or_name(options.get("reranker"))]
    facts = {**options, "used": used}
    unfinished = output.with_name(f"{output.name}.unfinished")
    with RunFolder(unfinished):
        if output.exists():
            raise UsageError(f"--output: {output} already exists. Remove it, or choose a different file.")
        solved = kept_chunks(unfinished, facts, problems, solve_all, progress)
        wait_for_all()  # all processes must have read all answers before the folder is removed
        if is_main_process():
            rows = []
            for problem, results in zip(problems, solved, strict=True):
                rows += [problem | result for result in results]
            write_json_lines(output, rows)
            for path in unfinished.iterdir():
                if path.name != LOCK:
                    path.unlink()
    if is_main_process():
        with suppress(OSError):  # another run has opened the folder
            unfinished.rmdir()


def _digest_or_name(name: str | None) -> str | None:
    """Return the digest of a local folder or file, and any other name, such as a Hub id, as it is."""
    if name and Path(name).exists():
        return content_digest(name)
    return name

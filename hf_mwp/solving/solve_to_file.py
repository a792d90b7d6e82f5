"""Function that solves problems and writes the answers to a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..store.files import content_digest, remove_folder, write_json_lines
from ..store.runs.main_process import is_main_process, wait_for_all
from ..usage_error import UsageError
from .kept_records import kept_records


def solve_to_file(
    problems: Sequence[Mapping[str, Any]],
    solve: Callable[[Sequence[Mapping[str, Any]]], Iterable[list[Mapping[str, Any]]]],
    model: str,
    options: Mapping[str, Any],
    output: str | Path,
) -> None:
    """
    Solve problems and write the answers to a JSON Lines file, in the order of the problems. An interrupted run
    resumes, and processes under `accelerate launch` share the work.

    Args:
        problems (`Sequence[Mapping]`): Problems with a `text` field.
        solve (`Callable`): Function that returns the answers (dictionaries) of each problem in a chunk.
        model (`str`), options (`Mapping[str, Any]`): Folder or Hub id of the solver, and search options. A run
            resumes only if both are unchanged.
        output (`str` or `Path`): Output file.

    Raises:
        UsageError: If the file exists.
    """
    output = Path(output)
    if output.exists():
        raise UsageError(f"--output: {output} already exists. Remove it, or choose a different file.")
    facts = {"model": content_digest(model) if Path(model).exists() else model, **options}
    unfinished = output.with_name(f"{output.name}.unfinished")
    solved = kept_records(unfinished, facts, problems, solve)
    wait_for_all()  # all processes must have read all answers before the folder is removed
    if is_main_process():
        pairs = zip(problems, solved, strict=True)
        write_json_lines(output, (problem | result for problem, results in pairs for result in results))
        remove_folder(unfinished)

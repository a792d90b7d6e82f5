"""Problems of a file solved into a file of answers, by one process or several."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..store.files import content_digest, remove_folder, write_json_lines
from ..store.runs.main_process import is_main_process, wait_for_all
from ..usage_error import UsageError
from .kept_records import join_records


AT_ONCE = 256  # problems of a chunk that is kept on disk


def solve_to_file(
    problems: Sequence[Mapping[str, Any]],
    solve: Callable[[Sequence[Mapping[str, Any]]], Iterable[list[Mapping[str, Any]]]],
    model: str,
    options: Mapping[str, Any],
    output: str | Path,
) -> None:
    """
    Write the answers to problems as JSON lines, in the order of the problems. A killed run resumes, and processes
    under
    `accelerate launch` share the work.

    Args:
        problems (`Sequence[Mapping]`): Problems with their `text`.
        solve (`Callable`): Returns the records of each problem of a chunk.
        model (`str`), options (`Mapping[str, Any]`): Folder or Hub id of the solver, and options of the answers; a run
            with other ones is not resumed.
        output (`str` or `Path`): The file.

    Raises:
        UsageError: the file exists.
    """
    output = Path(output)
    if output.exists():
        raise UsageError(f"--output: {output} exists. Remove it, or name another file.")
    facts = {"model": content_digest(model) if Path(model).exists() else model, **options}
    unfinished = output.with_name(f"{output.name}.unfinished")
    solved = join_records(unfinished, facts, problems, solve, AT_ONCE)
    wait_for_all()  # until all processes have read the answers of the others
    if is_main_process():
        pairs = zip(problems, solved, strict=True)
        write_json_lines(output, (problem | result for problem, results in pairs for result in results))
        remove_folder(unfinished)

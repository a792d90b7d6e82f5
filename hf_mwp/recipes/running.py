"""A recipe from its file to the results of its stages."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..store.runs.run_folder import check_output_folder
from ..tasks.commands import STAGES, trains
from ..tasks.math_word_problems import keep_loaded
from ..usage_error import UsageError
from .recipe import Recipe
from .stage import Commands, Stage, StageResult


def run_recipe(
    path: str | Path,
    output_dir: str | Path | None = None,
    budget: str | None = None,
    changes: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    targets: Sequence[str] | None = None,
    launch: str | None = None,
    commands: Commands | None = None,
    on_plan: Callable[[Recipe, list[Stage]], None] = lambda *_: None,
    on_stage: Callable[[Stage, int, int], None] = lambda *_: None,
    dry_run: bool = False,
    base: str | Path | None = None,
) -> list[StageResult]:
    """
    Run the stages of a recipe that are not complete; arguments not named here are those of [`Recipe`] and its `run`.

    Args:
        path (`str` or `Path`), base (`str` or `Path`, *optional*): See [`read_recipe`].
        output_dir (`str` or `Path`, *optional*): Folder of the stages; `runs/` and the file's name by default.
        commands (`Mapping[str, Callable]`, *optional*): By default each stage is a process (`python -m hf_mwp`).
        on_plan (`Callable`, *optional*): Called with the recipe and the wanted stages before they run.
        dry_run (`bool`, *optional*, defaults to `False`): Run nothing.

    Returns:
        `list[StageResult]`: a result for each stage, in their order; empty for a dry run.

    Raises:
        UsageError: a stage has a wrong option or a missing input (found before the first one runs), or failed.
    """
    folder = Path("runs") / Path(path).stem if output_dir is None else Path(output_dir)
    check_output_folder(folder)
    recipe = Recipe.from_file(path, folder, base, budget=budget, changes=changes, launch=launch)
    stages = recipe.wanted(targets)
    for stage in stages:
        stage.check()
    on_plan(recipe, stages)
    if dry_run:
        return []
    if commands is None:
        commands = {stage.command: partial(start_command, [sys.executable], stage.command) for stage in stages}
    with keep_loaded():
        return recipe.run(with_launcher(commands, launch), targets, on_stage)


def with_launcher(commands: Commands, launch: str | None) -> Commands:
    """Return the commands; those that train are started by a program such as `torchrun --nproc_per_node 2`."""
    launched = [] if launch is None else [name for name in STAGES if trains(name)]
    return {**commands, **{name: partial(start_command, shlex.split(launch), name) for name in launched}}


def start_command(launcher: Sequence[str], command: str, argv: Sequence[str]) -> int:
    """Run a command of `hf-mwp` in a process of its own; `UsageError` if it cannot be started, or fails."""
    words = [*launcher, "-m", "hf_mwp", command, *argv]
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be started: {error}") from error
    if status:
        raise UsageError(f"`{shlex.join(words)}` ended with status {status}.")
    return 0

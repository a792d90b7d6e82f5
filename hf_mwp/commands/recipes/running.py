"""Functions that run recipes."""

import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hf_mwp.commands.options.stages import STAGES, trains
from hf_mwp.utils.run_folder import check_output_folder
from hf_mwp.utils.usage_error import UsageError

from .recipe import Recipe
from .stage import Commands, Stage, StageResult


def run_recipe(
    path: str | Path,
    output_dir: str | Path | None = None,
    budget: str | None = None,
    changes: Mapping[str, Any] | None = None,
    targets: Sequence[str] | None = None,
    launch: str | None = None,
    commands: Commands | None = None,
    on_plan: Callable[[Recipe, list[Stage]], None] = lambda *_: None,
    on_stage: Callable[[Stage, int, int], None] = lambda *_: None,
    dry_run: bool = False,
    base: str | Path | None = None,
    min_accuracy: float | None = None,
    max_trainings: int | None = None,
) -> list[StageResult]:
    """
    Run the incomplete stages of a recipe file, and return the results in running order (none for a `dry_run`). For
    other arguments, see [`read_recipe`], [`Recipe`] and its `run`. The stages are in `runs/` and the file's name by
    default; without `commands`, each runs as a process. `on_plan` receives the recipe and its stages before they run.
    With a `min_accuracy` on validation problems, the recipe runs for at most `max_trainings` values of its `search`,
    until a model reaches it. Raises `UsageError` for a wrong option or input (before any stage runs), or a failed run.
    """
    folder = Path("runs") / Path(path).stem if output_dir is None else Path(output_dir).expanduser()
    check_output_folder(folder)
    make = partial(Recipe.from_file, path, folder, base, budget=budget, launch=launch)
    recipes = [make(changes=changes)]
    search_stages = []
    if min_accuracy is not None:
        search = recipes[0].search
        if not search:
            raise UsageError(f"{path} has no `search`, which --min_accuracy needs. Add one to the recipe.")
        values = search["values"][:max_trainings]
        recipes = [make(changes=[changes or {}, {search["variable"]: value}]) for value in values]
        search_stages = [search["stage"]]
    elif max_trainings is not None:
        raise UsageError("--max_trainings applies only to --min_accuracy. Set it, or omit --max_trainings.")
    plans = []
    for recipe in recipes:
        recipe_targets = recipe.targets if targets is None else targets
        plans.append((recipe, recipe.wanted([*recipe_targets, *search_stages])))
    for _, stages in plans:
        for stage in stages:
            stage.check()
    if dry_run:
        for recipe, stages in plans:
            on_plan(recipe, stages)
        return []
    commands = with_launcher(commands, launch)
    accuracies = []
    # Imports Transformers, which `--help` does not need.
    from hf_mwp.commands.tasks.loaded_data import keep_loaded

    with keep_loaded():
        for recipe, stages in plans:
            on_plan(recipe, stages)
            if min_accuracy is not None:
                accuracies.append(_accuracy_of_search(recipe, commands, on_stage))
            if min_accuracy is None or accuracies[-1] >= min_accuracy:
                return recipe.run(commands, targets, on_stage)
    listed = ", ".join(f"{value} {accuracy:.1%}" for value, accuracy in zip(values, accuracies, strict=True))
    raise UsageError(f"No model reaches --min_accuracy {min_accuracy:.1%} on the validation problems: {listed}.")


def _accuracy_of_search(recipe: Recipe, commands: Commands, on_stage: Callable[[Stage, int, int], None]) -> float:
    """Run the stage of a recipe's search, and return its answer accuracy on the validation problems."""
    stage = recipe.search["stage"]
    metrics = recipe.run(commands, [stage], on_stage)[-1].metrics
    reports = metrics.get("validation", {}).get("reports", {"all problems": {}})
    accuracy = reports["all problems"].get("answer_accuracy")
    if accuracy is None:
        raise UsageError(f"{recipe.source}, search: stage {stage!r} has no validation answer accuracy.")
    return accuracy


def with_launcher(commands: Commands | None, launch: str | None) -> Commands:
    """Return the commands (by default new processes), with those that train started by `launch` (`torchrun`)."""
    if commands is None:
        commands = {name: partial(start_command, [sys.executable], name) for name in STAGES}
    commands = dict(commands)
    if launch is not None:
        for name in filter(trains, STAGES):
            commands[name] = partial(start_command, shlex.split(launch), name)
    return commands


def start_command(launcher: Sequence[str], command: str, argv: Sequence[str]) -> int:
    """Run a command of `hf-mwp` as a subprocess. Raises `UsageError` if it cannot be started or fails."""
    words = [*launcher, "-m", "hf_mwp", command, *argv]
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be started: {error}") from error
    if status:
        raise UsageError(f"`{shlex.join(words)}` failed with exit status {status}.")
    return 0


def caution(budget: str | None) -> str:
    """Return a warning to print below metrics from the recipe budget `quick`, or an empty string."""
    if budget == "quick":
        return "budget quick: only to see it run, these figures say nothing"
    return ""

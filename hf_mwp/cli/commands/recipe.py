"""Running a recipe: `hf-mwp distill --config` with a file that has `stages`."""

from __future__ import annotations

import argparse
import importlib
import os
import shlex
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from ...runs.output_folder import check_output_folder
from ...runs.recipes import Recipe, RecipeError, Stage, StageResult
from ...runs.recipes.recipe import caution, read_yaml
from ...runs.recipes.stage import TRAINING_COMMANDS
from ...runs.recipes.stage_checks import check_data, check_layers, check_models
from ...tasks.math_word_problems import keep_loaded
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console, percent


STAGE_COMMANDS = (*TRAINING_COMMANDS, "mix", "label", "rerank", "evaluate", "card")
# How YAML writes nothing, and what a text in quotes or a block of text begins with.
NOTHING = ("", "~", "null", "Null", "NULL")
QUOTES = "'\"|>"


def is_recipe(argv: Sequence[str]) -> bool:
    """Whether the arguments name a configuration file with stages."""
    early = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    early.add_argument("--config")
    path = early.parse_known_args(list(argv))[0].config
    if path is None or not Path(path).is_file():
        return False
    try:
        content = read_yaml(path)
    except RecipeError:
        return False
    return isinstance(content, Mapping) and ("stages" in content or "base" in content)


def run_recipe(argv: Sequence[str]) -> int:
    """Runs the stages that are not there yet, and prints what each of them gave."""
    args, changes = _arguments(argv)
    check_one_process("distill")
    console = make_console()
    folder = args.output_dir or Path("runs") / Path(args.config).stem
    check_output_folder(folder)
    recipe = Recipe.from_file(args.config, folder, budget=args.budget, changes=changes, launch=args.launch)
    stages = recipe.wanted(args.targets)
    for stage in stages:
        check_stage(stage)
    console.print(plan_table(recipe, stages))
    if args.dry_run:
        return 0
    results = run_stages(recipe, console, args.targets)
    console.print(result_table(recipe, results))
    return 0


def run_stages(recipe: Recipe, console: Console, targets: Sequence[str] | None = None) -> list[StageResult]:
    """Runs what is missing of a recipe, with a heading for each stage."""

    def announce(stage: Stage, number: int, count: int) -> None:
        state = "done before, skipped" if stage.is_done else f"hf-mwp {stage.command}"
        console.rule(f"stage {number} of {count}: {stage.name} ({state})", align="left", style="dim")

    with keep_loaded():
        return recipe.run(stage_commands(recipe.launch), targets, announce)


def stage_commands(launch: str | None = None) -> dict[str, Callable[[list[str]], int]]:
    """
    The functions of the commands that may be stages.

    Args:
        launch (`str`, *optional*): A program that starts those that train, such as `torchrun --nproc_per_node 2`.
    """
    commands = {name: importlib.import_module(f".{name}", __package__).run for name in STAGE_COMMANDS}
    if launch is not None:
        commands |= {name: partial(_launch, shlex.split(launch), name) for name in TRAINING_COMMANDS}
    return commands


def _launch(launcher: list[str], command: str, argv: list[str]) -> int:
    words = [*launcher, "-m", "hf_mwp", command, *argv]
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be started: {error}") from error
    if status:
        raise UsageError(f"`{shlex.join(words)}` ended with status {status}.")
    return 0


def check_one_process(command: str, launches: bool = True) -> None:
    """
    Raises `UsageError` under `torchrun`, where each process would do the same.

    Args:
        command (`str`): Name of the command.
        launches (`bool`, *optional*, defaults to `True`): Whether it can itself launch stages in several processes.
    """
    processes = int(os.environ.get("WORLD_SIZE", "1"))
    if processes > 1:
        more = f" --launch 'torchrun --nproc_per_node {processes}'" if launches else ""
        raise UsageError(f"{command}: start it in one process, not in {processes}: hf-mwp {command} ...{more}")


def check_stage(stage: Stage) -> None:
    """
    Reads a stage's options as its command will, and looks for the models, data and layers that they name, so that
    what is wrong is found before the first stage is run.

    Raises:
        UsageError: names the stage and the option.
    """
    if stage.command not in STAGE_COMMANDS:
        raise UsageError(
            f"Stage {stage.name!r}: {stage.command!r} cannot be a stage; these can: {', '.join(STAGE_COMMANDS)}."
        )
    module = importlib.import_module(f".{stage.command}", __package__)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"stage {stage.name}"
        options = {**stage.options, "output_dir": str(stage.folder)}
        path.write_text(yaml.safe_dump(options, allow_unicode=True), encoding="utf-8")
        try:
            _, values = parse(f"stage {stage.name}", "", module.argument_types(), ["--config", str(path)])
        except UsageError as error:
            raise UsageError(str(error).replace(f"{folder}/", "")) from None
    check_models(stage, values)
    check_data(stage, values)
    check_layers(stage, values)


def plan_table(recipe: Recipe, stages: Sequence[Stage]) -> Table:
    """What will be run, and what is there already."""
    budget = "" if recipe.budget is None else f", budget {recipe.budget}"
    table = Table(title=f"{recipe.title}{budget}, in {recipe.output_dir}", title_justify="left")
    for heading in ("stage", "command", "builds on", "folder", "state"):
        table.add_column(heading)
    for stage in stages:
        state = "done" if stage.is_done else "begun" if stage.checkpoint else "to do"
        table.add_row(stage.name, f"hf-mwp {stage.command}", ", ".join(stage.needs), stage.folder.name, state)
    return table


def result_table(recipe: Recipe, results: Sequence[StageResult]) -> Table:
    """Time and headline figure of each stage."""
    table = Table(title=f"{recipe.title}, in {recipe.output_dir}", title_justify="left", caption_justify="left")
    table.caption = caution(recipe.budget) or None
    for heading in ("stage", "seconds", "result", "folder"):
        table.add_column(heading, justify="right" if heading == "seconds" else "left")
    for result in results:
        seconds = f"{result.seconds:.0f}" + (" (before)" if result.skipped else "")
        table.add_row(result.stage.name, seconds, headline(result.metrics), result.stage.folder.name)
    return table


def headline(metrics: Mapping[str, Any]) -> str:
    """The figures of a `metrics.json` that a reader asks for first."""
    fates = metrics.get("fates", {})
    shown = [f"{fates['labelled']:,} labelled"] if "labelled" in fates else []
    for part, shares in metrics.get("reranking", {}).items():
        shown.append(f"{part} {percent(shares['without'])} to {percent(shares['with'])} %")
    for part in ("validation", "test"):
        section = metrics.get(part)
        if not isinstance(section, Mapping):
            continue
        if "reports" in section:
            accuracy = section["reports"]["all problems"].get("answer_accuracy")
            beams = "greedy" if section["num_beams"] == 1 else f"{section['num_beams']} beams"
            shown.append(f"{part} {percent(accuracy)} % ({beams})")
        else:
            figures = {name.removeprefix("eval_"): value for name, value in section.items()}
            if "pos_f1" in figures:
                shown.append(f"POS F1 {percent(figures['pos_f1'])} %")
            if "mlm_loss" in figures:
                shown.append(f"MLM loss {figures['mlm_loss']:.2f}")
    return ", ".join(shown)


def _arguments(argv: Sequence[str]) -> tuple[argparse.Namespace, dict[str, Any]]:
    parser = argparse.ArgumentParser(
        prog="hf-mwp distill",
        allow_abbrev=False,
        description="Runs a recipe. --variable VALUE sets a variable of the file, --stage.option VALUE an option of "
        "one of its stages. VALUE is read as YAML; null takes an option away.",
    )
    parser.add_argument("--config", metavar="FILE", help="the recipe")
    parser.add_argument("--budget", help="one of the budgets of the recipe")
    parser.add_argument("--output_dir", "--output-dir", help="folder of the stages; runs/<name of the recipe>")
    parser.add_argument("--targets", nargs="+", help="stages that are wanted; those of the recipe if not given")
    add_launch(parser)
    parser.add_argument("--dry_run", "--dry-run", action="store_true", help="only show what would be run")
    args, rest = parser.parse_known_args(list(argv))
    return args, read_changes("distill", rest)


def add_launch(parser: argparse.ArgumentParser) -> None:
    """The option `--launch`."""
    parser.add_argument(
        "--launch",
        metavar="PROGRAM",
        help="start stages that train with this program: 'torchrun --nproc_per_node 2', 'accelerate launch'",
    )


def read_changes(command: str, arguments: Sequence[str]) -> dict[str, Any]:
    """
    Changes of a recipe from arguments of the form `--variable VALUE` and `--stage.option VALUE`. A value is read as
    YAML where it is a number, a list, a mapping, in quotes, or nothing (`null`, `~`, empty); all else is the text as
    it stands, also where YAML sees comments in it.

    Args:
        command (`str`): Name of the command, for messages.
        arguments (`Sequence[str]`): What the command's own options left over.

    Raises:
        UsageError: an argument of another form.
    """
    rest = list(arguments)
    changes: dict[str, Any] = {}
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if not flag.startswith("--") or (not equals and not rest):
            raise UsageError(f"{command}: {flag!r} needs the form --variable VALUE or --stage.option VALUE.")
        changes[flag[2:].replace("-", "_")] = _read_value(value if equals else rest.pop(0))
    return changes


def _read_value(text: str) -> Any:
    stripped = text.strip()
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        # A `ValueError` is a date that there is not.
        return text
    if value is None:
        return None if stripped in NOTHING else text
    # Of a text without quotes YAML leaves out comments and ends of lines.
    return stripped if isinstance(value, str) and stripped[0] not in QUOTES else value

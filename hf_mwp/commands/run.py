"""Command that runs the incomplete stages of a recipe: `hf-mwp run`."""

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from hf_mwp.solver.metrics.accuracy import is_share, metric_cell, percent
from hf_mwp.utils.checks import check_at_least_one, check_share
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import read_value

from .options.help_text import HelpFormatter, epilog_of
from .recipes import Recipe, Stage, StageResult, run_recipe
from .recipes.running import caution
from .recipes.stage import Commands
from .terminal.console import make_console, make_table, quiet_libraries


EXAMPLES = (
    "hf-mwp run examples/compact_asdiv.yaml --dry_run",
    "hf-mwp run examples/compact_math23k.yaml --budget quick --distill.temperature 2",
)


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of the options that do not depend on the recipe."""
    parser = argparse.ArgumentParser(
        prog="hf-mwp run",
        usage="hf-mwp run RECIPE [options]",
        allow_abbrev=False,
        formatter_class=HelpFormatter,
        description="Run the incomplete stages of a recipe. --variable VALUE sets a variable of the recipe, "
        "--stage.option VALUE sets an option of a stage. VALUE is read as YAML; null removes an option.",
        epilog=epilog_of(EXAMPLES),
    )
    parser.add_argument("recipe", nargs="?", help="file of the recipe")
    parser.add_argument("--targets", nargs="+", help="stages to complete; the recipe's `targets` if not given")
    parser.add_argument("--budget", help="one of the budgets of the recipe: quick, cpu, gpu, paper")
    parser.add_argument("--base", metavar="FILE", help="recipe to use instead of the `base` that the file contains")
    parser.add_argument("--output_dir", "--output-dir", help="folder of the stages; runs/<name of the recipe>")
    launch = "program that starts the training stages: 'torchrun --nproc_per_node 2', 'accelerate launch'"
    parser.add_argument("--launch", metavar="PROGRAM", help=launch)
    least = "train the recipe's models, smallest first, until a model reaches this validation accuracy, such as 0.75"
    parser.add_argument("--min_accuracy", "--min-accuracy", type=float, metavar="SHARE", help=least)
    most = "maximum number of models to train for --min_accuracy"
    parser.add_argument("--max_trainings", "--max-trainings", type=int, metavar="COUNT", help=most)
    parser.add_argument("--dry_run", "--dry-run", action="store_true", help="show the stages without running them")
    return parser


def run(argv: list[str], commands: Commands) -> int:
    """Run the incomplete stages and print their results; see `hf-mwp run --help`."""
    args, rest = make_parser().parse_known_args(argv)
    changes = read_changes(rest)
    if args.recipe is None:
        raise UsageError("run: no recipe is given. Pass a file such as examples/compact_asdiv.yaml.")
    check_share(vars(args), "min_accuracy")
    check_at_least_one(vars(args), "max_trainings")
    check_one_process("run")
    quiet_libraries()
    console = make_console()
    recipes: list[Recipe] = []

    def print_plan(recipe: Recipe, stages: list[Stage]) -> None:
        recipes.append(recipe)
        console.print(plan_table(recipe, stages))

    def print_stage(stage: Stage, number: int, num_stages: int) -> None:
        state = "done before, skipped" if stage.is_done else f"hf-mwp {stage.command}"
        console.rule(f"stage {number} of {num_stages}: {stage.name} ({state})", align="left", style="dim")

    options = vars(args) | {"changes": changes, "commands": commands}
    results = run_recipe(options.pop("recipe"), on_plan=print_plan, on_stage=print_stage, **options)
    if not args.dry_run:
        console.print(result_table(recipes[-1], results))
    return 0


def plan_table(recipe: Recipe, stages: Sequence[Stage]) -> Table:
    """Return a table of all stages, which shows whether each is complete."""
    budget = "" if recipe.budget is None else f", budget {recipe.budget}"
    rows = []
    for stage in stages:
        state = "to do"
        if stage.is_done:
            state = "done"
        elif stage.job.checkpoint:
            state = "begun"
        rows.append((stage.name, f"hf-mwp {stage.command}", ", ".join(stage.needs), stage.folder.name, state))
    headings = ("stage", "command", "builds on", "folder", "state")
    return make_table(f"{recipe.title}{budget}, in {recipe.output_dir}", headings, rows)


def result_table(recipe: Recipe, results: Sequence[StageResult]) -> Table:
    """Return a table with the time and the main results of each stage."""
    rows = []
    for result in results:
        seconds = f"{result.seconds:.0f}"
        if result.skipped:
            seconds += " (before)"
        rows.append((result.stage.name, seconds, headline(result.metrics), result.stage.folder.name))
    headings = ("stage", "seconds", "result", "folder")
    table = make_table(f"{recipe.title}, in {recipe.output_dir}", headings, rows, right=["seconds"])
    table.caption = caution(recipe.budget) or None
    table.caption_justify = "left"
    return table


def headline(metrics: Mapping[str, Any]) -> str:
    """Return the most important metrics of a stage's `metrics.json`."""
    phrases = []
    fates = metrics.get("fates", {})
    if "labelled" in fates:
        phrases.append(f"{fates['labelled']:,} labelled")
    for split, shares in metrics.get("reranking", {}).items():
        phrases.append(f"{split} {percent(shares['without'])} to {percent(shares['with'])} %")
    for split in ("validation", "test"):
        section = metrics.get(split, {})
        if "reports" in section:
            phrases.append(_describe_report(split, section["reports"]["all problems"], section.get("num_beams")))
        if "pos_f1" in section:
            phrases.append(f"POS F1 {percent(section['pos_f1'])} %")
        if "mlm_loss" in section:
            phrases.append(f"MLM loss {section['mlm_loss']:.2f}")
    return ", ".join(phrases)


def _describe_report(split: str, report: Mapping[str, Any], num_beams: int | None) -> str:
    """Return the main metric of a report, and how it was measured."""
    details = []
    name = "answer_accuracy"
    if "num_problems" not in report:
        # Reports of other tasks than math word problems begin with their main metric.
        name = next(iter(report))
        details.append(name)
    _, cell = metric_cell(name, report.get(name))
    if is_share(name):
        cell += " %"
    if num_beams == 1:
        details.append("greedy")
    elif num_beams is not None:
        details.append(f"{num_beams} beams")
    return f"{split} {cell} ({', '.join(details)})"


def read_changes(arguments: Sequence[str]) -> dict[str, Any]:
    """Parse changes to a recipe from arguments such as `--variable VALUE` and `--stage.option VALUE`."""
    rest = list(arguments)
    changes: dict[str, Any] = {}
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        if not flag.startswith("--") or (not equals and not rest):
            raise UsageError(f"run: {flag!r} is not understood. Write --variable VALUE or --stage.option VALUE.")
        changes[flag[2:].replace("-", "_")] = read_value(value if equals else rest.pop(0))
    return changes

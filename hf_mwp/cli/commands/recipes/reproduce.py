"""`hf-mwp reproduce`: a table of a paper, the paper's figures beside the measured ones."""

from __future__ import annotations

from pathlib import Path

from rich.table import Table as RichTable

from ....recipes import Stage
from ....recipes.recipe_file import read_yaml
from ....reports import Arm, Reproduction, TableResult, join_results, reproduce_table, write_report
from ....reports.results.arm_result import ArmRun
from ....reports.running import find_table, table_files
from ....store.runs.main_process import check_one_process
from ....usage_error import UsageError
from ...terminal.console import make_console, make_table
from .run import check_stage, read_changes, recipe_parser, stage_commands


def run(argv: list[str]) -> int:
    """Runs a table; see `hf-mwp reproduce --help`. The status is 1 if an arm failed."""
    parser = recipe_parser(
        "reproduce",
        "Runs a table of a paper, arm by arm, and writes results (JSON), a table (Markdown) and a picture with the "
        "paper's figures beside the measured ones. What is done is not done again.",
    )
    parser.add_argument("table", nargs="?", help="name of a table, such as compact-table4")
    parser.add_argument("--list", action="store_true", help="show the tables")
    parser.add_argument("--table_file", "--table-file", "--config", metavar="FILE", help="a file instead of a name")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds of each arm; that of the recipe if not given")
    parser.add_argument("--arms", nargs="+", help="arms to run; all if not given")
    parser.add_argument(
        "--from_results",
        "--from-results",
        nargs="+",
        metavar="FILE",
        help="make table and picture of results, without training; of several, measured apart, as one",
    )
    args, rest = parser.parse_known_args(list(argv))
    console = make_console()
    if args.list:
        console.print(list_tables())
        return 0
    if args.from_results is not None:
        return show_results(args.from_results, args.output_dir)
    if (args.table is None) == (args.table_file is None):
        raise UsageError("reproduce: give the name of a table (`--list` shows them) or a --table_file.")
    check_one_process("reproduce")
    place, folder, finished = "", Path(), 0

    def tell_plan(reproduction: Reproduction) -> None:
        nonlocal place, folder
        place, folder = f"of {len(reproduction.recipes)}", reproduction.output_dir
        console.print(plan_table(reproduction))

    def tell_stage(arm: Arm, seed: int, stage: Stage, number: int, count: int) -> None:
        if not stage.is_done:
            heading = f"arm {finished + 1} {place}: {arm.title}, seed {seed}, stage {number} of {count}: {stage.name}"
            console.rule(heading, align="left", style="dim")

    def tell_run(arm: Arm, run: ArmRun, result: TableResult) -> None:
        nonlocal finished
        finished += 1
        figures = ", ".join(
            f"{column.title} {column.show(run.figures[column.name])} {column.unit}".rstrip()
            for column in result.shown_columns
            if column.name in run.figures
        )
        told = "; ".join(each for each in (figures, run.reason) if each)
        if run.state != "waiting":
            console.print(f"arm {finished} {place}: {arm.title}, seed {run.seed}: {run.state}. {told}")

    result = reproduce_table(
        args.table_file or find_table(args.table),
        stage_commands(),
        args.output_dir,
        budget=args.budget,
        seeds=args.seeds,
        arms=args.arms,
        changes=read_changes("reproduce", rest),
        launch=args.launch,
        check=check_stage,
        on_plan=tell_plan,
        on_stage=tell_stage,
        on_run=tell_run,
        dry_run=args.dry_run,
        base=args.base,
    )
    if result is None:
        return 0
    console.print(result_table(result))
    name = result.file_name
    console.print(f"{folder} has {name}.json, {name}.md and {name}.png")
    if result.failed:
        console.print(f"Failed: {', '.join(result.failed)}; the same command tries them again.", style="red")
        return 1
    return 0


def show_results(files: list[str], output_dir: str | None) -> int:
    """Table and picture of results that are there."""
    path, joined = Path(files[0]), len(files) > 1
    if joined and output_dir is None:
        raise UsageError("reproduce: several --from_results are joined in an --output_dir, which must be given.")
    result = join_results(files) if joined else TableResult.load(path)
    write_report(result, Path(output_dir or path.parent), None if joined else path.stem)
    make_console().print(result_table(result))
    return 0


def list_tables() -> RichTable:
    """All tables with a line on each."""
    contents = ((name, read_yaml(path)) for name, path in table_files().items())
    rows = ((name, str(content.get("about") or content.get("table"))) for name, content in contents)
    listing = make_table("hf-mwp reproduce <table>", ("table", "what it shows"), rows)
    listing.columns[0].no_wrap = True
    return listing


def plan_table(reproduction: Reproduction) -> RichTable:
    """What there is to run."""
    table, rows = reproduction.table, []
    for name, seed in reproduction.recipes:
        arm, stages = table.arms[name], reproduction.stages(name, seed)
        done = sum(stage.is_done for stage in stages)
        if name not in reproduction.chosen:
            state = "not asked for"
        elif obstacle := reproduction.obstacle(arm, seed):
            state = f"skipped: {obstacle}"
        else:
            state = "done" if done == len(stages) else "to do"
        rows.append((arm.title, str(seed), f"{done} / {len(stages)}", state))
    headings = ("arm", "seed", "stages (done / all)", "state")
    return make_table(f"{table.title}, budget {reproduction.budget}", headings, rows)


def result_table(result: TableResult) -> RichTable:
    """The results for the terminal, the paper's figures in brackets."""
    columns, rows = result.shown_columns, []
    for arm in result.arms:
        cells = [arm.title]
        for column in columns:
            paper = arm.paper.get(column.name)
            cell = column.show(arm.mean(column.name), arm.deviation(column.name))
            cells.append(cell if paper is None else f"{cell} ({column.show(paper)})")
        rows.append((*cells, "-" if arm.seconds is None else f"{arm.seconds:.0f}"))
    title = f"{result.title}, budget {result.budget} (the paper's figures in brackets)"
    figures = [*(f"{column.title} {column.unit}".rstrip() for column in columns), "seconds"]
    shown = make_table(title, ("arm", *figures), rows, right=figures)
    shown.caption, shown.caption_justify = result.caution or None, "left"
    return shown

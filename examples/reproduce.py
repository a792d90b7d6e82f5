"""
Runs the rows (arms) of a paper's table, and writes results (JSON), a table (Markdown) and a picture, with the paper's
figures beside the measured ones. Completed stages are skipped.

    python examples/reproduce.py --list
    python examples/reproduce.py compact-table4 --budget quick
    python examples/reproduce.py --from_results runs/compact_math23k/compact-table4-cpu.json

The tables are in `examples/reproduce`; its README lists them with their run times.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.table import Table as RichTable

from hf_mwp.commands.main import stage_commands
from hf_mwp.commands.recipes.recipe import unknown_name
from hf_mwp.commands.run import read_changes
from hf_mwp.commands.tasks.loaded_data import keep_loaded
from hf_mwp.commands.terminal.console import make_console, make_table, quiet_libraries
from hf_mwp.utils.run_folder import check_output_folder, describe_environment
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import read_yaml
from reproduce.report import write_report
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult, join_results


PROGRAM = "reproduce.py"


def find_tables(folder: Path) -> dict[str, Path]:
    """Return the files of the tables in a folder by name, such as compact-table4."""
    tables = {}
    for path in sorted(folder.glob("*.yaml")):
        tables[path.stem.replace("_", "-")] = path
    return tables


TABLES = find_tables(Path(__file__).with_suffix(""))


def main(argv: list[str] | None = None) -> int:
    """Run a table or draw results; the status is 1 if an arm failed."""
    args, rest = parser().parse_known_args(argv)
    quiet_libraries()
    console = make_console()
    if args.list:
        console.print(list_tables())
        return 0
    if args.from_results is not None:
        console.print(result_table(show_results(args.from_results, args.output_dir)))
        return 0
    if (args.table is None) == (args.table_file is None):
        raise UsageError("Give the name of a table (`--list` shows them) or a --table_file.")
    if args.table is not None:
        message = unknown_name(args.table, TABLES, "table")
        if message:
            raise ReportError(message)
    if int(os.environ.get("WORLD_SIZE", "1")) > 1:
        raise UsageError(f"Start {PROGRAM} in one process; --launch PROGRAM starts its stages in several.")

    table = Table.from_file(args.table_file or TABLES[args.table], args.base)
    folder = Path(args.output_dir or Path("runs") / table.recipe_name)
    check_output_folder(folder)
    changes = read_changes(rest)
    environment = describe_environment()
    reproduction = Reproduction(table, folder, args.budget, args.seeds, args.arms, changes, environment, args.launch)
    reproduction.check()
    console.print(plan_table(reproduction))
    if args.dry_run:
        return 0
    with keep_loaded():
        result = reproduction.run(
            stage_commands(), console.print, lambda result: result.save(folder / f"{result.file_name}.json")
        )
    written = write_report(result, folder)
    console.print(result_table(result))
    console.print(f"{folder} has {', '.join(written)}")
    if result.failed:
        console.print(f"Failed: {', '.join(result.failed)}; the same command tries them again.", style="red")
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options; unknown options are changes to the recipe."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        allow_abbrev=False,
        description="Run a table of a paper. --VARIABLE VALUE sets a variable of its recipe, --STAGE.OPTION VALUE an "
        "option of a stage in all rows. VALUE is read as YAML; null removes an option.",
    )
    parser.add_argument("table", nargs="?", help="name of a table, such as compact-table4")
    parser.add_argument("--list", action="store_true", help="show the tables")
    parser.add_argument("--table_file", "--table-file", metavar="FILE", help="a file instead of a name")
    parser.add_argument("--budget", help="budget of the recipe: quick, cpu, gpu, paper")
    parser.add_argument("--base", metavar="FILE", help="a recipe to use instead of the table's")
    parser.add_argument("--seeds", nargs="+", type=int, help="seeds of each arm; those of the table by default")
    parser.add_argument("--arms", nargs="+", help="arms to run; all by default")
    parser.add_argument("--output_dir", "--output-dir", help="folder of the stages; runs/<name of the recipe>")
    parser.add_argument("--launch", metavar="PROGRAM", help="start training stages with 'torchrun --nproc_per_node 2'")
    parser.add_argument("--dry_run", "--dry-run", action="store_true", help="only show what would be run")
    parser.add_argument(
        "--from_results",
        "--from-results",
        nargs="+",
        metavar="FILE",
        help="make Markdown and picture from results, without training; several files are joined",
    )
    return parser


def show_results(files: list[str], output_dir: str | None) -> TableResult:
    """Write Markdown and picture of existing results, joined if there are several files."""
    path = Path(files[0])
    folder = Path(output_dir or path.parent)
    if len(files) == 1:
        result = TableResult.load(path)
        write_report(result, folder, path.stem)
        return result
    if output_dir is None:
        raise UsageError("Several --from_results are joined in an --output_dir, which must be given.")
    result = join_results(files)
    write_report(result, folder)
    return result


def list_tables() -> RichTable:
    """List all tables with a one-line description."""
    rows = []
    for name, path in TABLES.items():
        content = read_yaml(path)
        rows.append((name, str(content.get("about") or content.get("table"))))
    listing = make_table(f"{PROGRAM} TABLE", ("table", "what it shows"), rows)
    listing.columns[0].no_wrap = True
    return listing


def plan_table(reproduction: Reproduction) -> RichTable:
    """Show the state of each arm with each seed before the run."""
    table = reproduction.table
    rows = []
    for name, seed in reproduction.recipes:
        arm = table.arms[name]
        stages = reproduction.stages(name, seed)
        done = sum(stage.is_done for stage in stages)
        if name not in reproduction.chosen:
            state = "not asked for"
        elif obstacle := reproduction.obstacle(arm, seed):
            state = f"skipped: {obstacle}"
        elif done == len(stages):
            state = "done"
        else:
            state = "to do"
        rows.append((arm.title, str(seed), f"{done} / {len(stages)}", state))
    headings = ("arm", "seed", "stages (done / all)", "state")
    return make_table(f"{table.title}, budget {reproduction.budget}", headings, rows)


def result_table(result: TableResult) -> RichTable:
    """Show the results, with the paper's figures in brackets."""
    columns = result.shown_columns
    rows = []
    for arm in result.arms:
        cells = [arm.title]
        for column in columns:
            paper = arm.paper.get(column.name)
            cell = column.show(arm.mean(column.name), arm.deviation(column.name))
            if paper is not None:
                cell += f" ({column.show(paper)})"
            cells.append(cell)
        if arm.seconds is None:
            cells.append("-")
        else:
            cells.append(f"{arm.seconds:.0f}")
        rows.append(cells)
    title = f"{result.title}, budget {result.budget} (the paper's figures in brackets)"
    headings = [f"{column.title} {column.unit}".rstrip() for column in columns]
    headings.append("seconds")
    table = make_table(title, ("arm", *headings), rows, right=headings)
    table.caption = result.caution or None
    table.caption_justify = "left"
    return table


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)

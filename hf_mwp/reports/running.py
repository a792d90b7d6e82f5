"""A table from its file to results, Markdown and picture."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..recipes import Stage
from ..store.runs.environment import describe_environment
from ..store.runs.run_folder import check_output_folder
from ..tasks.math_word_problems import keep_loaded
from ..usage_error import UsageError
from .grid.arm import Arm
from .grid.table import Table
from .reproduction import Reproduction
from .results.arm_result import ArmRun
from .results.markdown import to_markdown
from .results.picture import draw_table
from .results.table_result import TableResult


FOLDER = Path("examples") / "reproduce"


def reproduce_table(
    path: str | Path,
    commands: Mapping[str, Callable[[list[str]], int]],
    output_dir: str | Path | None = None,
    budget: str | None = None,
    seeds: Sequence[int] | None = None,
    arms: Sequence[str] | None = None,
    changes: Mapping[str, Any] | None = None,
    launch: str | None = None,
    check: Callable[[Stage], None] | None = None,
    on_plan: Callable[[Reproduction], None] | None = None,
    on_stage: Callable[[Arm, int, Stage, int, int], None] | None = None,
    on_run: Callable[[Arm, ArmRun, TableResult], None] | None = None,
    dry_run: bool = False,
    base: str | Path | None = None,
) -> TableResult | None:
    """
    Runs what is not there yet of a table, and writes results (JSON), table (Markdown) and picture after each arm.

    Args:
        path (`str` or `Path`): The YAML file, see [`Table`].
        output_dir (`str` or `Path`, *optional*): Folder of all; `runs/` and the recipe's name by default.
        budget, seeds, arms, changes, launch: As in [`Reproduction`].
        commands, on_stage, on_run: As in [`Reproduction.run`].
        check (`Callable`, *optional*): Called with each stage before the first one is run; raises if one is wrong.
        on_plan (`Callable`, *optional*): Called with the [`Reproduction`] before anything is run.
        dry_run (`bool`, *optional*, defaults to `False`): Run nothing.
        base (`str` or `Path`, *optional*): A recipe that takes the place of the one that the table names.

    Returns:
        [`TableResult`]: the results; `None` of a dry run.

    Raises:
        ReportError, RecipeError: the table or its recipe is wrong.
        UsageError: the output folder is a file, or the check of a stage failed.
    """
    table = Table.from_file(path, base)
    folder = Path("runs") / table.recipe_name if output_dir is None else Path(output_dir)
    check_output_folder(folder)
    reproduction = Reproduction(table, folder, budget, seeds, arms, changes, describe_environment(), launch)
    if check is not None:
        check_stages(reproduction, check)
    if on_plan is not None:
        on_plan(reproduction)
    if dry_run:
        return None

    def record(arm: Arm, run: ArmRun, result: TableResult) -> None:
        write_report(result, folder)
        if on_run is not None:
            on_run(arm, run, result)

    with keep_loaded():
        return reproduction.run(commands, on_stage, record)


def find_table(name: str) -> Path:
    """The file of a table of the repository, such as `compact-table4`; `UsageError` if there is none."""
    files = table_files()
    if name not in files:
        where = "there are none here; run in the repository, or give --table_file" if not files else ", ".join(files)
        raise UsageError(f"reproduce: there is no table {name!r}: {where}.")
    return files[name]


def table_files() -> dict[str, Path]:
    """The tables of the repository by their names: of the working directory, or of the one the package lies in."""
    for root in (Path(), Path(__file__).parents[2]):
        files = sorted((root / FOLDER).glob("*.yaml"))
        if files:
            return {file.stem.replace("_", "-"): file for file in files}
    return {}


def check_stages(reproduction: Reproduction, check: Callable[[Stage], None]) -> None:
    """Checks each stage of the arms that will be run once; `UsageError` names the arm with a wrong one."""
    seen = set()
    for arm, seed in reproduction.recipes:
        if arm not in reproduction.chosen or reproduction.obstacle(reproduction.table.arms[arm], seed) is not None:
            continue
        for stage in reproduction.stages(arm, seed):
            if stage.fingerprint not in seen:
                seen.add(stage.fingerprint)
                try:
                    check(stage)
                except UsageError as error:
                    raise UsageError(f"{reproduction.table.name}, arm {arm!r}: {error}") from None


def write_report(result: TableResult, folder: Path, name: str | None = None) -> None:
    """Writes results as JSON, and Markdown and picture made of them; by default under the result's own name."""
    name = name or result.file_name
    result.save(folder / f"{name}.json")
    drawn = draw_table(result, folder / f"{name}.png")
    text = to_markdown(result, f"{name}.png" if drawn else None)
    (folder / f"{name}.md").write_text(text, encoding="utf-8")

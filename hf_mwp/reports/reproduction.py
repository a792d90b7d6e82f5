"""Running the arms of a table."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from ..options.checks import as_list
from ..recipes import Recipe, Stage
from ..recipes.running import with_launcher
from ..store.files import without_folder
from .grid.arm import Arm
from .grid.column import UNITS, Column
from .grid.table import Table
from .report_error import ReportError, check_name
from .results.arm_result import ArmResult, ArmRun
from .results.derived import DERIVED, derive_columns
from .results.table_result import TableResult
from .teacher import count_layers, describe_teacher, weights_missing


class Reproduction:
    """
    A table with a budget, its seeds and its folder: what there is to run, and running it.

    Stages that arms share are run once, also by other tables and by the recipe itself in the same folder, and what is
    there is not run again: an interrupted table goes on where it was. An arm that fails does not stop the others.

    The stages lie in the output folder. By default the budget is the recipe's own, and the seeds are those of the
    table or that of the recipe. Of arms that are not among `arms`, what is there already is read. The table's arms win
    over `changes` of the recipe; the environment is for the results; `launch` starts stages which train, if they are
    not just called. `ReportError` and `RecipeError` for unknown arms, budgets, variables or stages.
    """

    def __init__(
        self,
        table: Table,
        output_dir: str | Path,
        budget: str | None = None,
        seeds: Sequence[int] | None = None,
        arms: Sequence[str] | None = None,
        changes: Mapping[str, Any] | None = None,
        environment: Mapping[str, Any] | None = None,
        launch: str | None = None,
    ) -> None:
        self.table, self.output_dir, self.launch = table, Path(output_dir), launch
        self.changes, self.environment = dict(changes or {}), dict(environment or {})
        for name in arms or ():
            check_name(name, table.arms, "arm", table.name)
        self.chosen = set(table.arms) if arms is None else set(arms)
        self.budget = str(budget or table.recipe.get("budget"))
        self.teacher_stage = table.content.get("teacher_stage", "teacher")
        self.variables = self._recipe(next(iter(table.arms.values())), None).variables
        self.seeds = list(seeds or table.seeds(self.budget) or [self.variables.get("seed", 42)])
        counts = {arm.name: None if seeds else arm.seeds.get(self.budget) for arm in table.arms.values()}
        self._seeds_of = {arm: self.seeds[:count] for arm, count in counts.items()}
        self._failed: dict[str, str] = {}
        self._obstacles: dict[tuple[str, int], str | None] = {}
        self._stages: dict[tuple[str, int], list[Stage]] = {}
        self._changed: dict[tuple[str, int, str], Recipe] = {}

    @cached_property
    def missing(self) -> dict[str, str]:
        """Columns that stay empty, and why."""
        columns = self.table.columns.values()
        missing = {
            column.name: f"`{column.needs}` is not given (--{column.needs})"
            for column in columns
            if column.needs is not None and self.variables.get(column.needs) is None
        }
        of_missing = {column.name: missing.keys() & set(column.mean_of or ()) for column in columns}
        return missing | {name: missing[min(parts)] for name, parts in of_missing.items() if parts}

    @cached_property
    def recipes(self) -> dict[tuple[str, int], Recipe]:
        """The recipe of each arm with each seed, in the order in which they are run, without changes of columns."""
        arms = self.table.arms.values()
        return {
            (arm.name, seed): self._recipe(arm, seed)
            for seed in self.seeds
            for arm in arms
            if seed in self._seeds_of[arm.name]
        }

    def stages(self, arm: str, seed: int) -> list[Stage]:
        """The stages of an arm in the order in which they are run, those of all columns."""
        if (arm, seed) not in self._stages:
            recipes = [(column, self._recipe_of(column, arm, seed)) for column in self._measured()]
            needed = [each for column, recipe in recipes for each in recipe.wanted([self._stage_of(column, recipe)])]
            self._stages[arm, seed] = list({stage.folder: stage for stage in needed}.values())
        return self._stages[arm, seed]

    def obstacle(self, arm: Arm, seed: int) -> str | None:
        """Why an arm cannot be run here; `None` if it can."""
        key = arm.name, seed
        if key not in self._obstacles:
            self._obstacles[key] = self._obstacle(arm, seed)
        return self._obstacles[key]

    def run(
        self,
        commands: Mapping[str, Callable[[list[str]], int]],
        on_stage: Callable[[Arm, int, Stage, int, int], None] | None = None,
        on_run: Callable[[Arm, ArmRun, TableResult], None] | None = None,
    ) -> TableResult:
        """
        Runs what is not there yet.

        Args:
            commands (`Mapping[str, Callable]`): By name, functions that take arguments as the command line gives them.
            on_stage (`Callable`, *optional*): Called before a stage with arm, seed, stage, its number and their count.
            on_run (`Callable`, *optional*): Called after an arm with a seed, with all that is known by then.
        """
        result, commands = self._empty(), with_launcher(commands, self.launch)
        rows = {arm.name: arm for arm in result.arms}
        for name, seed in self.recipes:
            arm = self.table.arms[name]
            if name in self.chosen:
                run = self._run(arm, seed, commands, on_stage)
            else:
                run = self._read(arm, seed)
            rows[name].runs.append(run)
            derive_columns(result)
            if on_run is not None:
                on_run(arm, run, result)
        return result

    def _recipe(self, arm: Arm, seed: int | None, column: Column | None = None) -> Recipe:
        return self.table.make_recipe(arm, self.output_dir, self.budget, self.changes, seed, self.launch, column)

    def _recipe_of(self, column: Column, arm: str, seed: int) -> Recipe:
        """The recipe that the figure of a column is read from; columns of equal changes share one."""
        if not column.changes:
            return self.recipes[arm, seed]
        key = arm, seed, repr(column.changes)
        if key not in self._changed:
            self._changed[key] = self._recipe(self.table.arms[arm], seed, column)
        return self._changed[key]

    def _stage_of(self, column: Column, recipe: Recipe) -> str:
        """The stage that a column is read from."""
        name = column.resolved(recipe.variables).stage
        check_name(name, recipe.stages, "stage", f"{self.table.name}, column {column.name!r}")
        return name

    def _obstacle(self, arm: Arm, seed: int) -> str | None:
        if arm.missing is not None:
            return arm.missing
        recipe, stages = self.recipes[arm.name, seed], {each.name: each for each in self.stages(arm.name, seed)}
        if arm.weights is not None:
            missing = weights_missing(recipe.variables.get(arm.weights))
            if missing is not None:
                return f"{missing}; --{arm.weights} names a folder or Hub id"
        if arm.layers is not None:
            layers = count_layers(recipe, self.teacher_stage, stages)
            if layers is not None and layers < arm.layers:
                return f"the encoder has {layers} layers, {arm.layers} are needed"
        for other in self.table.arms.values():
            if other.name == arm.name:
                break
            is_run = other.missing is None and seed in self._seeds_of[other.name]
            if is_run and self._reads(other.name, seed) == self._reads(arm.name, seed):
                return f"what it changes is not used, so that it is the same as {other.name!r}"
        return None

    def _reads(self, arm: str, seed: int) -> list[Any]:
        """What makes the figures of an arm what they are."""
        columns = [each.resolved(self._recipe_of(each, arm, seed).variables).figure for each in self._measured()]
        return [[stage.fingerprint for stage in self.stages(arm, seed)], columns]

    def _measured(self) -> list[Column]:
        return [each for each in self.table.columns.values() if each.figure and each.name not in self.missing]

    def _run(self, arm: Arm, seed: int, commands: Mapping, on_stage: Callable | None) -> ArmRun:
        run = ArmRun(seed)
        try:
            obstacle = self.obstacle(arm, seed)
            if obstacle is not None:
                self._measure(arm, run)
                run.state, run.reason = "skipped", obstacle
                return run
            stages = self.stages(arm.name, seed)
            for number, stage in enumerate(stages, start=1):
                if stage.fingerprint in self._failed:
                    raise ReportError(self._failed[stage.fingerprint])
                if on_stage is not None:
                    on_stage(arm, seed, stage, number, len(stages))
                self._run_stage(stage, commands)
            return self._read(arm, seed)
        except Exception as error:  # whatever it is, the other arms go on, and it is told at the end
            run = ArmRun(seed, "failed", reason=str(error) or type(error).__name__)
            with contextlib.suppress(Exception):
                self._fill(arm, run)
            return run

    def _run_stage(self, stage: Stage, commands: Mapping) -> None:
        try:
            stage.run(commands)
        except Exception as error:
            self._failed[stage.fingerprint] = f"stage {stage.name}: {str(error) or type(error).__name__}"
            raise ReportError(self._failed[stage.fingerprint]) from error

    def _measure(self, arm: Arm, run: ArmRun) -> None:
        columns = [column for column in self.table.columns.values() if column.measure is not None]
        if arm.shape is not None and columns:
            from .shape import measure_shape

            measured = measure_shape(arm.shape)
            run.figures |= {each.name: UNITS[each.unit][0] * measured[each.measure] for each in columns}

    def _read(self, arm: Arm, seed: int) -> ArmRun:
        """The run of an arm whose stages are done; a waiting one if they are not."""
        run = ArmRun(seed)
        if not all(stage.is_done for stage in self.stages(arm.name, seed)) or self.obstacle(arm, seed) is not None:
            self._measure(arm, run)
            return run
        self._fill(arm, run)
        run.state = "done"
        return run

    def _fill(self, arm: Arm, run: ArmRun) -> None:
        """What the stages of an arm that are done have to say."""
        self._measure(arm, run)
        for column in self._measured():
            recipe = self._recipe_of(column, arm.name, run.seed)
            stage, own = recipe.stages[self._stage_of(column, recipe)], column.resolved(recipe.variables)
            if stage.is_done:
                metrics = {**stage.metrics, "stage_seconds": stage.finished.record["seconds"]}
                for name, found in own.read(metrics).items():
                    getattr(run, name)[column.name] = found
        every = self.stages(arm.name, run.seed)
        for stage in every:
            if stage.is_done:
                record = {"stage": stage.name, "folder": stage.folder.name, "fingerprint": stage.fingerprint}
                run.stages.append({**record, "seconds": stage.finished.record["seconds"]})
        run.seconds = round(sum(stage["seconds"] for stage in run.stages), 1)
        run.teacher = "; ".join(dict.fromkeys(filter(None, self._teachers(arm, run.seed))))

    def _teachers(self, arm: Arm, seed: int) -> Iterator[str]:
        """What the teachers of an arm's columns are, as far as they are there."""
        for column in self._measured():
            recipe = self._recipe_of(column, arm.name, seed)
            stages = {stage.name: stage for stage in recipe.wanted([self._stage_of(column, recipe)])}
            if self.teacher_stage not in stages or stages[self.teacher_stage].is_done:
                yield describe_teacher(recipe, self.teacher_stage, stages)

    def _empty(self) -> TableResult:
        table = self.table
        pooled = {part: each.name for each in table.columns.values() for part in each.pooled_of or ()}
        return TableResult(
            table=table.name,
            title=table.title,
            paper=str(table.content.get("paper", "The paper")),
            note=str(table.content.get("note", "")),
            budget=self.budget,
            seeds=self.seeds,
            columns=[
                {"name": each.name, "title": each.title, "unit": each.unit}
                | ({"missing": self.missing[each.name]} if each.name in self.missing else {})
                | ({"part_of": pooled[each.name]} if each.name in pooled else {})
                | ({"metric": each.metric} if each.metric else {})
                | ({"optional": True} if each.optional else {})
                | {key: value for key in DERIVED if (value := getattr(each, key)) is not None}
                for each in table.columns.values()
            ],
            arms=[
                ArmResult(
                    arm.name,
                    arm.title,
                    dict(arm.paper),
                    arm.note,
                    x=self._place(arm),
                    compare_with=arm.compare_with or "",
                )
                for arm in table.arms.values()
            ],
            x=table.x or "",
            compare_with=table.compare_with or "",
            data=f"{', '.join(self._data_sets())}, {self._training_size()}",
            changes=without_folder(self.changes | ({"launch": self.launch} if self.launch else {})),
            environment=self.environment,
        )

    def _place(self, arm: Arm) -> float | None:
        """Where an arm of a sweep stands."""
        if self.table.x is None:
            return None
        value = self.recipes[arm.name, self.seeds[0]].variables[self.table.x]
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ReportError(f"arm {arm.name!r}: the variable {self.table.x!r} is no number: {value!r}.") from None

    def _data_sets(self) -> list[str]:
        """Names of the data sets or tasks of the columns."""
        arm = next(iter(self.table.arms))
        variables = [self._recipe_of(column, arm, self.seeds[0]).variables for column in self._measured()]
        names = [each.get("dataset") or each.get("task") for each in variables or [self.variables]]
        return list(dict.fromkeys(str(without_folder(name)) for name in names))

    def _training_size(self) -> str:
        """How many problems the stages of the arms learn from, in words."""
        by_size: dict[str, list[str]] = {}
        for arm in self.table.arms:
            for stage in self.stages(arm, self.seeds[0]):
                if stage.command in ("train", "distill"):
                    limit, extra = stage.options.get("max_train_samples"), as_list(stage.options.get("extra_train"))
                    size = f"{limit:,}" if limit else "all"
                    names = by_size.setdefault(" and those of ".join([size, *map(str, without_folder(extra))]), [])
                    if stage.name not in names:
                        names.append(stage.name)
        if len(by_size) < 2:
            return f"{next(iter(by_size), 'all')} training problems"
        return "training problems: " + "; ".join(f"{size} ({', '.join(names)})" for size, names in by_size.items())

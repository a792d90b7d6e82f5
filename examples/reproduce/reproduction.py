"""Runs the arms of a table."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from hf_mwp.commands.recipes import Recipe, Stage
from hf_mwp.commands.recipes.running import with_launcher
from hf_mwp.utils.checks import as_list
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.usage_error import UsageError

from .descriptions import count_layers, describe_teacher, describe_training_size, measure_shape, weights_missing
from .table import DERIVED, UNITS, Arm, Column, ReportError, Table, check_name
from .table_result import ArmResult, ArmRun, TableResult


class Reproduction:
    """
    A table with a budget, seeds and an output folder.

    Stages that arms share are run once, also with other tables and the recipe itself in the same folder. Completed
    stages are skipped, interrupted ones resume. An arm that fails does not stop the others.

    Args:
        table ([`Table`]): The table.
        output_dir (`str` or `Path`): Folder of the stages.
        budget (`str`, *optional*): Budget of the recipe; its own by default.
        seeds (`Sequence[int]`, *optional*): Seeds of each arm; those of the table by default, or the recipe's.
        arms (`Sequence[str]`, *optional*): Arms to run, all by default; existing results of the other arms are read.
        changes (`Mapping[str, Any]`, *optional*): Changes to the recipe, see [`Recipe`]; the arms' changes win.
        environment (`Mapping[str, Any]`, *optional*): Versions and machine, for the results.
        launch (`str`, *optional*): Program that launches training stages, such as `torchrun`.

    Raises:
        ReportError, RecipeError: unknown arms, budgets, variables or stages.
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
        self.table = table
        self.output_dir = Path(output_dir)
        self.launch = launch
        self.changes = dict(changes or {})
        self.environment = dict(environment or {})
        for name in arms or ():
            check_name(name, table.arms, "arm", table.name)
        self.chosen = set(table.arms)
        if arms is not None:
            self.chosen = set(arms)
        self.budget = str(budget or table.recipe.get("budget") or "")
        self.teacher_stage = table.content.get("teacher_stage", "teacher")
        first_arm = next(iter(table.arms.values()))
        self.variables = self._recipe(first_arm, None).variables
        seeds = seeds or as_list(self.changes.get("seed"))
        self.seeds = list(seeds or table.seeds(self.budget) or [self.variables.get("seed", 42)])
        self._seeds_of = {}
        for arm in table.arms.values():
            num_seeds = None if seeds else arm.seeds.get(self.budget)
            self._seeds_of[arm.name] = self.seeds[:num_seeds]
        self._failed: dict[str, str] = {}
        self._obstacles: dict[tuple[str, int], str | None] = {}
        self._stages: dict[tuple[str, int], list[Stage]] = {}
        self._changed: dict[tuple[str, int, str], Recipe] = {}

    @cached_property
    def missing(self) -> dict[str, str]:
        """Columns that stay empty, with the reason."""
        missing = {}
        for column in self.table.columns.values():
            if column.needs is not None and self.variables.get(column.needs) is None:
                missing[column.name] = f"`{column.needs}` is not given (--{column.needs})"
        # A mean is missing if one of its columns is.
        missing_means = {}
        for column in self.table.columns.values():
            sources = missing.keys() & set(column.mean_of or ())
            if sources:
                missing_means[column.name] = missing[min(sources)]
        return missing | missing_means

    @cached_property
    def recipes(self) -> dict[tuple[str, int], Recipe]:
        """Recipes by arm and seed, in the order of the runs, without the columns' changes."""
        recipes = {}
        for seed in self.seeds:
            for arm in self.table.arms.values():
                if seed in self._seeds_of[arm.name]:
                    recipes[arm.name, seed] = self._recipe(arm, seed)
        return recipes

    def stages(self, arm: str, seed: int) -> list[Stage]:
        """Return the stages of all columns of an arm, in the order in which they run."""
        if (arm, seed) not in self._stages:
            stages = {}
            for column in self._measured:
                recipe = self._recipe_of(column, arm, seed)
                for stage in recipe.wanted([self._stage_of(column, recipe)]):
                    stages[stage.folder] = stage
            self._stages[arm, seed] = list(stages.values())
        return self._stages[arm, seed]

    def obstacle(self, arm: Arm, seed: int) -> str | None:
        """Return the reason why an arm cannot be run; `None` if it can."""
        key = arm.name, seed
        if key not in self._obstacles:
            self._obstacles[key] = self._obstacle(arm, seed)
        return self._obstacles[key]

    def check(self) -> None:
        """Check each stage of the selected arms once. Raises `UsageError` with the arm for a wrong stage."""
        seen = set()
        for arm, seed in self.recipes:
            if arm not in self.chosen or self.obstacle(self.table.arms[arm], seed) is not None:
                continue
            for stage in self.stages(arm, seed):
                if stage.fingerprint not in seen:
                    seen.add(stage.fingerprint)
                    try:
                        stage.check()
                    except UsageError as error:
                        raise UsageError(f"{self.table.name}, arm {arm!r}: {error}") from None

    def run(
        self,
        commands: Mapping[str, Callable[[list[str]], int]],
        tell: Callable[[str], object] = lambda line: None,
        save: Callable[[TableResult], object] = lambda result: None,
    ) -> TableResult:
        """
        Run the stages that are not completed yet.

        Args:
            commands (`Mapping[str, Callable]`): Functions that run a command with its arguments, by command name.
            tell (`Callable`, *optional*): Called with a line of text before each stage and after each arm.
            save (`Callable`, *optional*): Called after each arm, with the results so far.
        """
        result = self._empty()
        commands = with_launcher(commands, self.launch)
        rows = {arm.name: arm for arm in result.arms}
        for number, (name, seed) in enumerate(self.recipes, start=1):
            arm = self.table.arms[name]
            heading = f"arm {number} of {len(self.recipes)}: {arm.title}, seed {seed}"
            if name in self.chosen:
                run = self._run(arm, seed, commands, heading, tell)
            else:
                run = self._read(arm, seed)
            rows[name].runs.append(run)
            result.derive()
            save(result)
            if run.state != "waiting":
                tell(f"{heading}: {run.state}. {_outcome(run, result.shown_columns)}")
        return result

    def _recipe(self, arm: Arm, seed: int | None, column: Column | None = None) -> Recipe:
        return self.table.make_recipe(arm, self.output_dir, self.budget, self.changes, seed, self.launch, column)

    def _recipe_of(self, column: Column, arm: str, seed: int) -> Recipe:
        """Return the recipe of a column's figure; columns with equal changes share a recipe."""
        if not column.changes:
            return self.recipes[arm, seed]
        key = arm, seed, repr(column.changes)
        if key not in self._changed:
            self._changed[key] = self._recipe(self.table.arms[arm], seed, column)
        return self._changed[key]

    def _stage_of(self, column: Column, recipe: Recipe) -> str:
        """Return the name of the stage that a column is read from."""
        name = column.resolved(recipe.variables).stage
        check_name(name, recipe.stages, "stage", f"{self.table.name}, column {column.name!r}")
        return name

    def _obstacle(self, arm: Arm, seed: int) -> str | None:
        if arm.missing is not None:
            return arm.missing
        recipe = self.recipes[arm.name, seed]
        stages = {stage.name: stage for stage in self.stages(arm.name, seed)}
        if arm.weights is not None:
            missing = weights_missing(recipe.variables.get(arm.weights))
            if missing is not None:
                return f"{missing}; --{arm.weights} names a folder or Hub id"
        if arm.layers is not None:
            layers = count_layers(recipe, self.teacher_stage, stages)
            if layers is not None and layers < arm.layers:
                return f"the encoder has {layers} layers, {arm.layers} are needed"
        for earlier_arm in self.table.arms.values():
            if earlier_arm.name == arm.name:
                break
            is_run = earlier_arm.missing is None and seed in self._seeds_of[earlier_arm.name]
            if is_run and self._reads(earlier_arm.name, seed) == self._reads(arm.name, seed):
                return f"what it changes is not used, so that it is the same as {earlier_arm.name!r}"
        return None

    def _reads(self, arm: str, seed: int) -> list[Any]:
        """Return what determines the figures of an arm."""
        figures = []
        for column in self._measured:
            variables = self._recipe_of(column, arm, seed).variables
            figures.append(column.resolved(variables).figure)
        fingerprints = [stage.fingerprint for stage in self.stages(arm, seed)]
        return [fingerprints, figures]

    @cached_property
    def _measured(self) -> list[Column]:
        """The columns that are read from stages."""
        columns = self.table.columns.values()
        return [column for column in columns if column.figure and column.name not in self.missing]

    def _run(self, arm: Arm, seed: int, commands: Mapping, heading: str, tell: Callable[[str], object]) -> ArmRun:
        try:
            obstacle = self.obstacle(arm, seed)
            if obstacle is not None:
                run = ArmRun(seed, "skipped", reason=obstacle)
                self._measure(arm, run)
                return run
            stages = self.stages(arm.name, seed)
            for number, stage in enumerate(stages, start=1):
                if stage.fingerprint in self._failed:
                    raise ReportError(self._failed[stage.fingerprint])
                if not stage.is_done:
                    tell(f"{heading}, stage {number} of {len(stages)}: {stage.name}")
                self._run_stage(stage, commands)
            return self._read(arm, seed)
        # Any failure is reported at the end; the other arms still run.
        except Exception as error:
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
        """Fill in the columns that only need the arm's shape."""
        columns = [column for column in self.table.columns.values() if column.measure is not None]
        if arm.shape is not None and columns:
            measured = measure_shape(arm.shape)
            for column in columns:
                factor, _ = UNITS[column.unit]
                run.figures[column.name] = factor * measured[column.measure]

    def _read(self, arm: Arm, seed: int) -> ArmRun:
        """Return the run of an arm; its state is `waiting` if its stages are not completed."""
        run = ArmRun(seed)
        is_done = all(stage.is_done for stage in self.stages(arm.name, seed))
        if not is_done or self.obstacle(arm, seed) is not None:
            self._measure(arm, run)
            return run
        self._fill(arm, run)
        run.state = "done"
        return run

    def _fill(self, arm: Arm, run: ArmRun) -> None:
        """Read the completed stages of an arm into its run."""
        self._measure(arm, run)
        for column in self._measured:
            recipe = self._recipe_of(column, arm.name, run.seed)
            stage = recipe.stages[self._stage_of(column, recipe)]
            if stage.is_done:
                metrics = {**stage.job.metrics, "stage_seconds": stage.job.record["seconds"]}
                for name, value in column.resolved(recipe.variables).read(metrics).items():
                    getattr(run, name)[column.name] = value
        for stage in self.stages(arm.name, run.seed):
            if stage.is_done:
                record = {"stage": stage.name, "folder": stage.folder.name, "fingerprint": stage.fingerprint}
                run.stages.append({**record, "seconds": stage.job.record["seconds"]})
        run.seconds = round(sum(stage["seconds"] for stage in run.stages), 1)
        teachers = [teacher for teacher in self._teachers(arm, run.seed) if teacher]
        run.teacher = "; ".join(dict.fromkeys(teachers))

    def _teachers(self, arm: Arm, seed: int) -> Iterator[str]:
        """Describe the teachers of an arm's columns that exist."""
        for column in self._measured:
            recipe = self._recipe_of(column, arm.name, seed)
            stages = {stage.name: stage for stage in recipe.wanted([self._stage_of(column, recipe)])}
            if self.teacher_stage not in stages or stages[self.teacher_stage].is_done:
                yield describe_teacher(recipe, self.teacher_stage, stages)

    def _empty(self) -> TableResult:
        """Return the results of the table without any run."""
        table = self.table
        stages = []
        arms = []
        for arm in table.arms.values():
            stages.extend(self.stages(arm.name, self.seeds[0]))
            compare_with = arm.compare_with or ""
            row = ArmResult(
                arm.name, arm.title, dict(arm.paper), arm.note, x=self._position(arm), compare_with=compare_with
            )
            arms.append(row)
        changes = dict(self.changes)
        if self.launch:
            changes["launch"] = self.launch
        return TableResult(
            table=table.name,
            title=table.title,
            paper=str(table.content.get("paper", "The paper")),
            note=str(table.content.get("note", "")),
            budget=self.budget,
            seeds=self.seeds,
            columns=[self._describe(column) for column in table.columns.values()],
            arms=arms,
            x=table.x or "",
            compare_with=table.compare_with or "",
            data=f"{', '.join(self._data_sets())}, {describe_training_size(stages)}",
            changes=shorten_paths(changes),
            environment=self.environment,
        )

    def _describe(self, column: Column) -> dict[str, Any]:
        """Return the fields of a column that results need; see [`TableResult`]."""
        columns = self.table.columns.values()
        pools = [pool.name for pool in columns if column.name in (pool.pooled_of or ())]
        fields: dict[str, Any] = {"name": column.name, "title": column.title, "unit": column.unit}
        if column.name in self.missing:
            fields["missing"] = self.missing[column.name]
        if pools:
            fields["part_of"] = pools[-1]
        if column.metric is not None:
            fields["metric"] = column.metric
        if column.optional:
            fields["optional"] = column.optional
        for key in DERIVED:
            sources = getattr(column, key)
            if sources is not None:
                fields[key] = sources
        return fields

    def _position(self, arm: Arm) -> float | None:
        """Return the position of an arm in a sweep."""
        if self.table.x is None:
            return None
        value = self.recipes[arm.name, self.seeds[0]].variables[self.table.x]
        try:
            return float(value)
        except (TypeError, ValueError):
            raise ReportError(f"arm {arm.name!r}: the variable {self.table.x!r} is no number: {value!r}.") from None

    def _data_sets(self) -> list[str]:
        """Return the names of the datasets or tasks of the columns."""
        arm = next(iter(self.table.arms))
        variables = [self._recipe_of(column, arm, self.seeds[0]).variables for column in self._measured]
        names = []
        for values in variables or [self.variables]:
            name = values.get("dataset") or values.get("task")
            names.append(str(shorten_paths(name)))
        return list(dict.fromkeys(names))


def _outcome(run: ArmRun, columns: list[Column]) -> str:
    """Return the figures of a run and the reason why it is not done."""
    figures = []
    for column in columns:
        if column.name in run.figures:
            figures.append(f"{column.title} {column.show(run.figures[column.name])} {column.unit}".rstrip())
    texts = [", ".join(figures), run.reason]
    return "; ".join(text for text in texts if text)

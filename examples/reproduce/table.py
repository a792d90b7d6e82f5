"""A table of a paper as a grid of changes to a recipe: its columns and its rows (arms)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from string import Template
from typing import Any, Self

from hf_mwp.commands.recipes import Recipe, RecipeError, read_recipe
from hf_mwp.commands.recipes.recipe import unknown_name
from hf_mwp.utils.yaml_values import read_yaml

from .metrics import METRICS


KEYS = (
    *("table", "paper", "about", "note", "recipe", "teacher_stage", "x", "compare_with"),
    *("seeds", "variables", "stages", "changes", "budgets", "columns", "arms"),
)
# Factor from a figure in `metrics.json` to the unit, and decimals shown.
UNITS = {"%": (100.0, 2), "M": (1e-6, 1), "B": (1e-9, 1), "h": (1 / 3600, 2), "": (1.0, 2)}
MEASURES = ("parameters", "flops")
# Fields with the columns that a column is computed from.
DERIVED = ("mean_of", "pooled_of", "share_of")
SOURCES = ("figure", "measure", "share_of", "mean_of", "pooled_of")


class ReportError(ValueError):
    """Error in a table's file or in a results file; the message has the file and the place in it."""


def check_name(name: object, choices: Iterable[object], item: str, location: str) -> None:
    """Raise `ReportError` with a close match if `name` is not among the choices; `item` says what it names."""
    message = unknown_name(name, choices, item)
    if message is not None:
        raise ReportError(f"{location}: {message}")


def check_fields(dataclass_type: type, content: Any, location: str) -> None:
    """Raise `ReportError` unless `content` is a mapping of fields of a dataclass without its field `name`."""
    if not isinstance(content, Mapping):
        raise ReportError(f"{location} must be a mapping.")
    names = [field.name for field in fields(dataclass_type) if field.name != "name"]
    for key in content:
        check_name(key, names, "key", location)


@dataclass(frozen=True)
class Column:
    """
    A column of a table. Exactly one of `figure`, `measure`, `share_of`, `mean_of` and `pooled_of` is the source of its
    figures. `${name}` in a stage or in keys is a variable of the recipe, so that arms can read different stages or
    figures.
    """

    name: str  # in the file
    title: str  # heading
    unit: str = "%"  # or "M" (millions), "B" (billions), "h" (hours, of seconds), or empty
    stage: str | None = None  # stage with the figure in its `metrics.json`
    # Keys of the figure, such as "test/reports/all problems/answer_accuracy"; the first existing one of several.
    # "stage_seconds" is the time of the stage.
    figure: str | list[str] | None = None
    optional: bool = False  # arms without the figure leave the cell empty, and the column is not compared
    count: str | list[str] | None = None  # keys of the number of problems that the figure is a share of
    outcomes: str | None = None  # keys of a string of 0 and 1, the outcome of each problem, for intervals
    examples: str | None = None  # keys of predictions and labels of each example, for a figure that is not a share
    metric: str | None = None  # the [`METRICS`] that is computed from them: "f1", "spearman", ...
    measure: str | None = None  # "parameters" or "flops" of the arm's shape
    share_of: Mapping[str, str] | None = None  # `{column: ..., arm: ...}`: percent of the figure of another arm
    mean_of: list[str] | None = None  # columns to average
    pooled_of: list[str] | None = None  # columns whose problems are pooled, such as those of all folds
    needs: str | None = None  # variable without which the column stays empty, such as a folder of data
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the recipe, such as a different dataset

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any], location: str) -> Self:
        """Read a column from its mapping in the file. Raises `ReportError` for wrong fields."""
        location = f"{location}, column {name!r}"
        check_fields(cls, content, location)
        column = cls(name=name, **{"title": name, **content})
        sources = [key for key in SOURCES if getattr(column, key) is not None]
        if len(sources) != 1:
            raise ReportError(f"{location} must have exactly one of {', '.join(SOURCES)}.")
        if (column.figure is None) != (column.stage is None):
            raise ReportError(f"{location} must have both `stage` and `figure`, or none of them.")
        if not isinstance(column.changes, Mapping) or (column.changes and column.figure is None):
            raise ReportError(f"{location}: `changes` must be a mapping, and needs `stage` and `figure`.")
        if (column.examples is None) != (column.metric is None):
            raise ReportError(f"{location} must have both `examples` and `metric`, or none of them.")
        check_name(column.unit, UNITS, "unit", location)
        if column.metric is not None:
            check_name(column.metric, METRICS, "metric", location)
        if column.measure is not None:
            check_name(column.measure, MEASURES, "measure", location)
        return column

    def resolved(self, variables: Mapping[str, Any]) -> Self:
        """Return the column of one arm, with the values of the recipe's variables in its keys."""

        def fill(keys: Any) -> Any:
            if isinstance(keys, list):
                return [fill(key) for key in keys]
            if keys is None:
                return None
            return Template(keys).safe_substitute(variables)

        return replace(
            self,
            stage=fill(self.stage),
            figure=fill(self.figure),
            count=fill(self.count),
            outcomes=fill(self.outcomes),
            examples=fill(self.examples),
        )

    def read(self, metrics: Mapping[str, Any]) -> dict[str, Any]:
        """
        Read the figure, in the column's unit, and its count, outcomes and examples from a `metrics.json`; the keys are
        fields of [`ArmRun`]. Raises `ReportError` if one of them is missing, except for an optional figure.
        """
        values: dict[str, Any] = {}
        try:
            figure = float(_at(metrics, self.figure))
        except ReportError:
            if not self.optional:
                raise
        else:
            factor, _ = UNITS[self.unit]
            values["figures"] = round(factor * figure, 4)
        if self.count is not None:
            values["counts"] = int(_at(metrics, self.count))
        if self.outcomes is not None:
            values["outcomes"] = str(_at(metrics, self.outcomes))
        if self.examples is not None:
            examples = dict(_at(metrics, self.examples))
            if examples:
                values["examples"] = examples
        return values

    def show(self, value: float | None, deviation: float | None = None) -> str:
        """Format a figure for the table; `None` is a dash."""
        if value is None:
            return "-"
        _, decimals = UNITS[self.unit]
        text = f"{value:.{decimals}f}"
        if deviation is not None:
            text += f" ± {deviation:.{decimals}f}"
        return text


@dataclass(frozen=True)
class Arm:
    """A row of a table: its changes to the recipe, and the paper's figures."""

    name: str  # in the file and for `--arms`
    title: str = ""  # first cell of the row; the name by default
    changes: Mapping[str, Any] = field(default_factory=dict)  # to the recipe, see [`Recipe`]
    budgets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # further changes, by budget
    paper: Mapping[str, float] = field(default_factory=dict)  # the paper's figures by column, in the column's unit
    shape: Mapping[str, Any] | None = None  # encoder whose parameters and operations are measured: [`measure_shape`]
    weights: str | None = None  # variable with pretrained weights; the arm is skipped if they are unavailable
    layers: int | None = None  # layers that the teacher needs; the arm is skipped if it has fewer
    seeds: Mapping[str, int] = field(default_factory=dict)  # number of the table's seeds to run, by budget
    compare_with: str | None = None  # arms to compare with, separated by spaces, instead of the table's
    missing: str | None = None  # why the arm cannot be run; only the paper's figures are shown
    note: str = ""  # for the reader

    @classmethod
    def from_dict(cls, name: str, content: Mapping[str, Any] | None, location: str) -> Self:
        """Read an arm from its mapping in the file. Raises `ReportError` for wrong fields."""
        location = f"{location}, arm {name!r}"
        if content is None:
            content = {}
        check_fields(cls, content, location)
        for key in ("changes", "budgets", "paper", "seeds"):
            if not isinstance(content.get(key, {}), Mapping):
                raise ReportError(f"{location}: `{key}` must be a mapping.")
        return cls(name=name, **{"title": name, **content})


class Table:
    """
    A table of a paper, read from a YAML file:

    ```yaml
    table: First layers of the encoder
    paper: Table 4 of Ming et al. (AAAI 2025)
    about: one line for the list of tables
    note: what differs from the paper
    recipe: ../compact_math23k.yaml            # relative to this file
    teacher_stage: teacher                     # optional: the stage of the teacher, for its description
    x: layers                                  # for a sweep: the variable on the x axis of the picture
    compare_with: "1"                          # the arms to compare the others with, with intervals
    seeds: {cpu: [42, 1, 2]}                   # by budget; the recipe's seed by default
    variables: {layers: 12}                    # added to the recipe's variables
    stages: {}                                 # added to the recipe's stages
    changes: {teacher.encoder_layers: "${layers}"}
    budgets: {quick: {teacher: {max_steps: 5}}}
    columns:
      answer: {title: Answer acc., stage: evaluate_teacher, figure: test/reports/all problems/answer_accuracy}
    arms:
      "1": {changes: {layers: 1}, paper: {answer: 60.52}}
    ```

    The recipe of an arm is the recipe with its budget, then changed by the table, the table's budget, the caller, the
    column (such as its dataset), the arm, and the arm's budget; the last one wins. Equal stages are
    run once.

    Args:
        name (`str`): Name of the table, such as `"compact-table4"`.
        content (`Mapping`): The parsed file.
        recipe (`Mapping`): The recipe, as [`~recipes.read_recipe`] returns it.
        source (`str`): The file, for messages.

    Raises:
        ReportError: unknown keys, columns, stages or variables.
        RecipeError: the recipe cannot be read.
    """

    def __init__(
        self, name: str, content: Mapping[str, Any], recipe: Mapping[str, Any], source: str = "the table"
    ) -> None:
        if not isinstance(content, Mapping):
            raise ReportError(f"{source} must hold a mapping.")
        for key in content:
            check_name(key, KEYS, "key", source)
        for key in ("columns", "arms"):
            if not isinstance(content.get(key), Mapping) or not content[key]:
                raise ReportError(f"{source} has no mapping `{key}`.")
        self.name = name
        self.content = content
        self.recipe = recipe
        self.source = source
        self.columns: dict[str, Column] = {}
        for key, column in content["columns"].items():
            self.columns[str(key)] = Column.from_dict(str(key), column, source)
        self.arms: dict[str, Arm] = {}
        for key, arm in content["arms"].items():
            self.arms[str(key)] = Arm.from_dict(str(key), arm, source)
        self.title = str(content.get("table", name))
        self.x = content.get("x")
        self.compare_with: str | None = None
        if content.get("compare_with") is not None:
            self.compare_with = str(content["compare_with"])
        self.stage_names = [*(recipe.get("stages") or {}), *(content.get("stages") or {})]
        # Name of the recipe's file and of its output folder.
        self.recipe_name = Path(content.get("recipe", name)).stem
        self._check_names()

    @classmethod
    def from_file(cls, path: str | Path, recipe: str | Path | None = None) -> Self:
        """Read a table and its recipe, or use `recipe` instead."""
        path = Path(path)
        content = read_yaml(path)
        if not isinstance(content, Mapping) or not isinstance(content.get("recipe"), str):
            raise ReportError(f"{path} is not a table: it has no `recipe`.")
        if recipe is not None:
            content = {**content, "recipe": str(Path(recipe).resolve())}
        name = path.stem.replace("_", "-")
        return cls(name, content, read_recipe(path.parent / content["recipe"]), str(path))

    def seeds(self, budget: str) -> list[int]:
        """Return the table's seeds for a budget; the list is empty if it has none."""
        return list((self.content.get("seeds") or {}).get(budget) or ())

    def make_recipe(
        self,
        arm: Arm,
        output_dir: str | Path,
        budget: str | None = None,
        changes: Mapping[str, Any] | None = None,
        seed: int | None = None,
        launch: str | None = None,
        column: Column | None = None,
    ) -> Recipe:
        """
        Return the recipe of an arm for a budget (by default the recipe's own), with `changes` and `launch` as in
        [`Recipe`], a value of the variable `seed`, and the changes of a column. The arm's own changes win.
        """
        budget = budget or self.recipe.get("budget")
        # The last layer wins.
        layers = [self.content.get("changes"), (self.content.get("budgets") or {}).get(budget), changes]
        if seed is not None:
            layers.append({"seed": seed})
        if column is not None:
            layers.append(column.changes)
        layers += [arm.changes, arm.budgets.get(budget)]
        merged = [layer for layer in layers if layer]
        content = {key: value for key, value in self.recipe.items() if key != "targets"}
        for key in ("variables", "stages"):
            content[key] = {**(self.recipe.get(key) or {}), **(self.content.get(key) or {})}
        try:
            return Recipe(content, output_dir, budget=budget, changes=merged, source=self.source, launch=launch)
        except RecipeError as error:
            raise RecipeError(f"arm {arm.name!r}: {error}") from None

    def _check_names(self) -> None:
        """Check that each stage, variable, column and arm that the file refers to exists."""
        names: list[tuple[str, str | None, str]] = []  # what it names, the name, and its location in the file
        teacher_stage = self.content.get("teacher_stage", "teacher")
        # Recipes without a teacher need no stage of the default name.
        if teacher_stage != "teacher":
            names.append(("stage", teacher_stage, self.source))
        names.append(("variable", self.x, self.source))
        for arm_name in (self.compare_with or "").split():
            names.append(("arm", arm_name, self.source))
        for column in self.columns.values():
            location = f"{self.source}, column {column.name!r}"
            # A stage with a variable is only known for an arm.
            if "$" not in str(column.stage):
                names.append(("stage", column.stage, location))
            names.append(("variable", column.needs, location))
            for source in [*(column.mean_of or ()), *(column.pooled_of or ())]:
                names.append(("column", source, location))
            if column.share_of is not None:
                names.append(("column", str(column.share_of.get("column")), location))
                names.append(("arm", str(column.share_of.get("arm")), location))
        for arm in self.arms.values():
            location = f"{self.source}, arm {arm.name!r}"
            for column_name in arm.paper:
                names.append(("column", column_name, location))
            for arm_name in (arm.compare_with or "").split():
                names.append(("arm", arm_name, location))
            names.append(("variable", arm.weights, location))
        choices = {
            "stage": self.stage_names,
            "variable": [*(self.recipe.get("variables") or {}), *(self.content.get("variables") or {})],
            "column": self.columns,
            "arm": self.arms,
        }
        for item, name, location in names:
            if name is not None:
                check_name(name, choices[item], item, location)


def _item(container: Any, key: str) -> Any:
    """Return the value of a key in a mapping or of an index in a list; `None` if there is none."""
    if isinstance(container, Mapping):
        return container.get(key)
    if isinstance(container, list) and key.isdigit() and int(key) < len(container):
        return container[int(key)]
    return None


def _at(metrics: Mapping[str, Any], paths: str | list[str]) -> Any:
    """Look up the first existing path of keys; numbers are places in lists."""
    if isinstance(paths, str):
        paths = [paths]
    for path in paths:
        value: Any = metrics
        for key in path.split("/"):
            value = _item(value, key)
        if value is not None:
            return value
    raise ReportError(f"The figures of the stage have no {' and no '.join(map(repr, paths))}.")

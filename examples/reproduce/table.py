"""A table of a paper as a grid of changes to a recipe."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from hf_mwp.options.yaml_values import read_yaml
from hf_mwp.recipes import Recipe, RecipeError, read_recipe

from .arm import Arm
from .column import Column
from .report_error import ReportError, check_name


KEYS = (
    *("table", "paper", "about", "note", "recipe", "teacher_stage", "x", "compare_with"),
    *("seeds", "variables", "stages", "changes", "budgets", "columns", "arms"),
)


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
    compare_with: "1"                          # the arm to compare the others with, with intervals
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
        self.name, self.content, self.recipe, self.source = name, content, recipe, source
        self.columns = {str(k): Column.from_dict(str(k), v, source) for k, v in content["columns"].items()}
        self.arms = {str(k): Arm.from_dict(str(k), v, source) for k, v in content["arms"].items()}
        self.title, self.x = str(content.get("table", name)), content.get("x")
        compare_with = content.get("compare_with")
        self.compare_with = None if compare_with is None else str(compare_with)
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
        return cls(path.stem.replace("_", "-"), content, read_recipe(path.parent / content["recipe"]), str(path))

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
        layers = (
            self.content.get("changes"),
            (self.content.get("budgets") or {}).get(budget),
            changes,
            None if seed is None else {"seed": seed},
            None if column is None else column.changes,
            arm.changes,
            arm.budgets.get(budget),
        )
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
        teacher = self.content.get("teacher_stage", "teacher")
        names = [
            ("stage", None if teacher == "teacher" else teacher, self.source),
            ("variable", self.x, self.source),
            ("arm", self.compare_with, self.source),
        ]
        for column in self.columns.values():
            place = f"{self.source}, column {column.name!r}"
            names += [("stage", None if "$" in str(column.stage) else column.stage, place)]
            names += [("variable", column.needs, place)]
            names += [("column", other, place) for other in [*(column.mean_of or ()), *(column.pooled_of or ())]]
            if column.share_of is not None:
                names += [(kind, str(column.share_of.get(kind)), place) for kind in ("column", "arm")]
        for arm in self.arms.values():
            place = f"{self.source}, arm {arm.name!r}"
            names += [("column", column, place) for column in arm.paper]
            names += [("arm", arm.compare_with, place), ("variable", arm.weights, place)]
        known = {
            "stage": self.stage_names,
            "variable": [*(self.recipe.get("variables") or {}), *(self.content.get("variables") or {})],
            "column": self.columns,
            "arm": self.arms,
        }
        for kind, name, place in names:
            if name is not None:
                check_name(name, known[kind], kind, place)

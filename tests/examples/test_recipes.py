from pathlib import Path

import pytest
import yaml

from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.recipes import Recipe
from hf_mwp.commands.recipes.recipe import read_recipe
from hf_mwp.utils.option import option_values
from reproduce.reproduction import Reproduction
from reproduce.table import Table


EXAMPLES = Path(__file__).parents[2] / "examples"
TYPES = {
    "solver": types_of("train"),
    "distill": types_of("distill"),
    "evaluate": types_of("evaluate"),
}


# Recipes are several commands.
KINDS = ("compact", "compress", "pruning", "stark")
OTHERS = ("distill_translation", "distill_math_seq2seq", "distill_glue")
RECIPES = [path for path in sorted(EXAMPLES.glob("*.yaml")) if path.name.startswith((*KINDS, *OTHERS))]
COMMANDS = [path for path in sorted(EXAMPLES.glob("*.yaml")) if path not in RECIPES]


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.name)
def test_example_is_read(path, demo_package):
    values = option_values(*parse(path.stem, "", TYPES[path.stem.split("_")[0]], ["--config", str(path)]))
    given = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert given.items() <= {name: values[name] for name in given}.items()


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_stages_are_checked_at_each_budget(path, tmp_path, demo_package):
    file = tmp_path / "rows.tsv"
    file.touch()
    recipe = read_recipe(path)
    changes = {"use_cpu": True, "bf16": False}
    # Data that are not in the repository.
    if "answers" in recipe["variables"]:
        changes["answers"] = str(file)
    if path.stem == "distill_translation":
        changes["dataset"] = str(file)
    for budget in recipe["budgets"]:
        for stage in Recipe.from_file(path, tmp_path, budget=budget, changes=changes).stages.values():
            stage.check()


def test_the_encoder_of_the_results_is_a_recipe_to_build_others_on(tmp_path):
    example, base = EXAMPLES / "compact_math23k_self_training.yaml", EXAMPLES / "compact_math23k_e5.yaml"
    flags = {"encoder": "multilingual-e5-small-bert-zh", "encoder_layers": 6, "bottleneck_layers": "2,4,6"}
    flags |= {"tokenizer": None, "bf16": True, "use_cpu": True, "pretrain.max_length": 512}
    given = Recipe.from_file(example, tmp_path, changes=flags)
    built_on = Recipe.from_file(example, tmp_path, base)
    assert built_on.stages == given.stages and built_on.title == given.title
    name = "compact_table8.yaml"
    table = Table.from_file(EXAMPLES / "reproduce" / name, base)
    assert table.recipe_name == "compact_math23k_e5"
    recipes = Reproduction(table, tmp_path).recipes
    flagged = Reproduction(Table.from_file(EXAMPLES / "reproduce" / name), tmp_path, changes=flags).recipes
    assert {key: recipe.stages for key, recipe in recipes.items()} == {
        key: recipe.stages for key, recipe in flagged.items()
    }


def check_data_dir(recipe):
    """Each stage that can read a data set by its name is told where it lies."""
    made_here = {str(stage.folder) for stage in recipe.stages.values()}
    for stage in recipe.stages.values():
        by_name = stage.options.get("dataset") not in made_here
        if by_name and stage.command in ("pretrain", "train", "distill", "stark", "evaluate", "pseudo-label"):
            expected = None if stage.options.get("dataset") == "ape_clean" else recipe.variables["data_dir"]
            assert stage.options.get("data_dir") == expected, stage.name


@pytest.mark.parametrize("changes", [{}, {"data_dir": "/my/data"}], ids=["default", "given"])
@pytest.mark.parametrize(
    "path",
    [each for kind in KINDS for each in sorted(EXAMPLES.glob(f"{kind}_*.yaml"))],
    ids=lambda path: path.name,
)
def test_recipes_read_data_where_it_lies(path, changes, tmp_path):
    check_data_dir(Recipe.from_file(path, tmp_path, changes={"teacher.encoder": "a", **changes}))


TABLES = [Table.from_file(path) for path in sorted((EXAMPLES / "reproduce").glob("*.yaml"))]


@pytest.mark.parametrize(
    "table", [table for table in TABLES if "data_dir" in table.recipe["variables"]], ids=lambda table: table.name
)
def test_tables_read_data_where_it_lies(table, tmp_path):
    for recipe in Reproduction(table, tmp_path, changes={"data_dir": "/my/data"}).recipes.values():
        check_data_dir(recipe)

import pytest
import yaml

from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.recipes import Recipe
from hf_mwp.commands.recipes.recipe import read_recipe
from hf_mwp.utils.option import option_values
from reproduce.reproduction import Reproduction
from reproduce.table import Table
from tests.examples.scripts import EXAMPLES, check_data_dir
from tests.slow_parameters import slow_after, slow_except


COMMANDS = {"solver": "train", "distill": "distill", "evaluate": "evaluate"}
METHODS = ("compact", "compress", "pruning", "stark")
# Options of a script, see `test_scripts.py`.
OPTIONS_OF_SCRIPTS = ("compress_llm",)
# Recipes are several commands, other files the options of one.
RECIPES = []
OPTIONS = []
for path in sorted(EXAMPLES.glob("*.yaml")):
    if path.stem in OPTIONS_OF_SCRIPTS:
        continue
    is_recipe = path.stem.startswith((*METHODS, "distill_translation", "distill_math_seq2seq", "distill_glue"))
    (RECIPES if is_recipe else OPTIONS).append(path)
QUICK = ("compact_math23k", "compress_asdiv", "distill_glue", "pruning_asdiv", "stark_math")
QUICK_RECIPES = [EXAMPLES / f"{name}.yaml" for name in QUICK]
RECIPES_OF_METHODS = [path for path in RECIPES if path.stem.startswith(METHODS)]


@pytest.mark.parametrize("path", OPTIONS, ids=lambda path: path.name)
def test_options_of_a_command_are_read(path, demo_package):
    types = types_of(COMMANDS[path.stem.partition("_")[0]])
    values = option_values(*parse(path.stem, "", types, ["--config", str(path)]))
    options = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert options.items() <= values.items()


def check_stages(path, folder, count=None):
    """Check the stages of a recipe at its first budgets, or at all of them."""
    file = folder / "rows.tsv"
    file.touch()
    recipe = read_recipe(path)
    changes = {"use_cpu": True, "bf16": False}
    # Data that are not in the repository.
    if "answers" in recipe["variables"]:
        changes["answers"] = str(file)
    if path.stem == "distill_translation":
        changes["dataset"] = str(file)
    for budget in list(recipe["budgets"])[:count]:
        for stage in Recipe.from_file(path, folder, budget=budget, changes=changes).stages.values():
            stage.check()


@pytest.mark.parametrize("path", slow_except(RECIPES, *QUICK_RECIPES), ids=lambda path: path.name)
def test_stages_are_valid_at_the_first_budget(path, tmp_path, demo_package):
    check_stages(path, tmp_path, 1)


@pytest.mark.slow
@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_stages_are_valid_at_each_budget(path, tmp_path, demo_package):
    check_stages(path, tmp_path)


@pytest.mark.slow
def test_recipe_built_on_the_encoder_of_the_results_equals_its_options(tmp_path):
    base = EXAMPLES / "compact_math23k_e5.yaml"
    changes = {"encoder": "multilingual-e5-small-bert-zh", "encoder_layers": 6, "bottleneck_layers": "2,4,6"}
    changes |= {"tokenizer": None, "bf16": True, "use_cpu": True, "pretrain.max_length": 512}
    path = EXAMPLES / "compact_math23k_self_training.yaml"
    recipe = Recipe.from_file(path, tmp_path, base)
    expected = Recipe.from_file(path, tmp_path, changes=changes)
    assert (recipe.stages, recipe.title) == (expected.stages, expected.title)
    path = EXAMPLES / "reproduce" / "compact_table1.yaml"
    table = Table.from_file(path, base)
    assert table.recipe_name == "compact_math23k_e5"
    recipes = Reproduction(table, tmp_path).recipes
    expected_recipes = Reproduction(Table.from_file(path), tmp_path, changes=changes).recipes
    assert recipes.keys() == expected_recipes.keys()
    for arm, recipe in recipes.items():
        assert recipe.stages == expected_recipes[arm].stages


@pytest.mark.parametrize("changes", [{}, {"data_dir": "/my/data"}], ids=["default", "given"])
@pytest.mark.parametrize("path", slow_after(2, RECIPES_OF_METHODS), ids=lambda path: path.name)
def test_stages_have_the_folder_of_the_data(path, changes, tmp_path):
    check_data_dir(Recipe.from_file(path, tmp_path, changes={"teacher.encoder": "a", **changes}))

import pytest

from hf_mwp.commands.recipes import RecipeError
from hf_mwp.utils.usage_error import UsageError
from reproduce.table import ReportError, Table
from tests.examples.reproduce.grids import TABLE, write_table


def test_name_and_recipe_come_from_the_files(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    assert (table.name, table.recipe_name, table.title) == ("small-table", "small", "Layers")
    assert list(table.arms) == ["one", "three", "all"]
    assert table.arms["three"].title == "three" and table.arms["one"].title == "first layer"


@pytest.mark.parametrize(
    ("arm", "budget", "expected"),
    [
        ("one", "normal", {"encoder_layers": 1, "max_steps": 9, "dropout": 0.5}),
        ("one", "quick", {"encoder_layers": 1, "max_steps": 2, "dropout": 0.5, "warm_up": 1}),
        ("three", "quick", {"encoder_layers": 3, "max_steps": 2, "dropout": 0.5, "warm_up": 7}),
        ("all", None, {"encoder_layers": 12, "max_steps": 9, "dropout": 0.5}),
    ],
)
def test_table_budget_and_arm_change_the_recipe(tmp_path, arm, budget, expected):
    table = Table.from_file(write_table(tmp_path))
    options = dict(table.make_recipe(table.arms[arm], tmp_path, budget).stages["teacher"].options)
    assert {name: options.get(name) for name in expected} == expected
    assert ("warm_up" in options) == ("warm_up" in expected)


def test_an_arm_wins_over_the_caller_and_the_caller_over_the_table(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    recipe = table.make_recipe(table.arms["one"], tmp_path, "quick", {"layers": 7, "teacher.dropout": 0.1}, seed=3)
    options = recipe.stages["teacher"].options
    assert (options["encoder_layers"], options["dropout"], options["seed"]) == (1, 0.1, 3)


def test_equal_stages_of_arms_have_one_folder(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    recipes = [table.make_recipe(arm, tmp_path) for arm in table.arms.values()]
    assert len({recipe.stages["base"].folder for recipe in recipes}) == 1
    assert len({recipe.stages["teacher"].folder for recipe in recipes}) == 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"colums": {}}, "unknown key 'colums'. Did you mean 'columns'"),
        ({"arms": {}}, "no mapping `arms`"),
        ({"arms": {"a": {"papers": {}}}}, "arm 'a': unknown key 'papers'. Did you mean 'paper'"),
        ({"arms": {"all": {"paper": {"anser": 1}}}}, "arm 'all': unknown column 'anser'. Did you mean 'answer'"),
        ({"arms": {"all": {"changes": [1]}}}, "`changes` must be a mapping"),
        ({"arms": {"all": {"weights": "weihts"}}}, "unknown variable 'weihts'. Did you mean 'weights'"),
        ({"columns": {"x": {"stage": "evaluate"}}}, "exactly one of figure, measure, share_of, mean_of, pooled_of"),
        ({"columns": {"x": {"figure": "a"}}}, "both `stage` and `figure`"),
        ({"columns": {"x": {"stage": "evalute", "figure": "a"}}}, "unknown stage 'evalute'. Did you mean 'evaluate'"),
        ({"columns": {"x": {"measure": "flop"}}}, "unknown measure 'flop'. Did you mean 'flops'"),
        ({"columns": {"x": {"measure": "flops", "unit": "G"}}}, "unknown unit 'G'"),
        ({"columns": {"x": {"mean_of": ["y"]}}}, "unknown column 'y'"),
        ({"columns": {"x": {"stage": "base", "figure": "a", "needs": "ape"}}}, "unknown variable 'ape'"),
        (
            {"columns": {"x": {"measure": "flops", "changes": {"seed": 1}}}},
            "`changes` must be a mapping, and needs `stage`",
        ),
        ({"columns": {"x": {"stage": "base", "figure": "a", "changes": 1}}}, "`changes` must be a mapping"),
        (
            {"columns": {"x": {"stage": "base", "figure": "a", "examples": "b"}}},
            "must have both `examples` and `metric`",
        ),
        (
            {"columns": {"x": {"stage": "base", "figure": "a", "examples": "b", "metric": "f2"}}},
            "unknown metric 'f2'",
        ),
        ({"arms": {"all": {"compare_with": "on"}}}, "arm 'all': unknown arm 'on'"),
        ({"x": "layer"}, "unknown variable 'layer'. Did you mean 'layers'"),
        ({"compare_with": "alle"}, "unknown arm 'alle'. Did you mean 'all'"),
        ({"teacher_stage": "theacher"}, "unknown stage 'theacher'"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path, changes, message):
    with pytest.raises(ReportError, match="small_table.yaml") as raised:
        Table.from_file(write_table(tmp_path, **changes))
    assert message in str(raised.value)


def test_a_wrong_change_of_an_arm_names_the_arm(tmp_path):
    arms = {**TABLE["arms"], "one": {"changes": {"techer.max_steps": 1}}}
    table = Table.from_file(write_table(tmp_path, arms=arms))
    with pytest.raises(RecipeError, match="arm 'one'.*unknown stage 'techer'. Did you mean 'teacher'"):
        table.make_recipe(table.arms["one"], tmp_path)


def test_the_recipe_of_a_table_may_have_a_base(tmp_path):
    (tmp_path / "more.yaml").write_text("{base: small.yaml, stages: {teacher: {max_steps: 7}}}")
    table = Table.from_file(write_table(tmp_path, recipe="more.yaml"))
    options = table.make_recipe(table.arms["one"], tmp_path, "normal").stages["teacher"].options
    assert (options["max_steps"], options["encoder_layers"], table.recipe_name) == (7, 1, "more")


def test_a_file_without_a_recipe_is_no_table(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("stages: {}\n")
    with pytest.raises(ReportError, match="it has no `recipe`"):
        Table.from_file(path)
    with pytest.raises(UsageError, match="y.yaml"):
        Table.from_file(tmp_path / "y.yaml")

from collections import defaultdict

import pytest

from hf_mwp.commands.recipes import RecipeError
from hf_mwp.utils.usage_error import UsageError
from reproduce.table import ReportError, Table
from tests.examples.reproduce.grids import write_table
from tests.slow_parameters import slow_after


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


def test_arm_wins_over_the_caller_and_the_caller_over_the_table(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    recipe = table.make_recipe(table.arms["one"], tmp_path, "quick", {"layers": 7, "teacher.dropout": 0.1}, seed=3)
    options = recipe.stages["teacher"].options
    assert (options["encoder_layers"], options["dropout"], options["seed"]) == (1, 0.1, 3)


def test_equal_stages_of_arms_share_a_folder(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    folders = defaultdict(set)
    for arm in table.arms.values():
        for name, stage in table.make_recipe(arm, tmp_path).stages.items():
            folders[name].add(stage.folder)
    assert len(folders["base"]) == 1
    assert len(folders["teacher"]) == 3


FIGURE = {"stage": "base", "figure": "a"}


def with_column(**column):
    return {"columns": {"x": column}}


def with_arm(**arm):
    return {"arms": {"all": arm}}


@pytest.mark.parametrize(
    ("changes", "message"),
    slow_after(
        8,
        [
            ({"colums": {}}, "unknown key 'colums'. Did you mean 'columns'"),
            ({"arms": {}}, "no mapping `arms`"),
            (with_arm(papers={}), "arm 'all': unknown key 'papers'. Did you mean 'paper'"),
            (with_arm(paper={"anser": 1}), "arm 'all': unknown column 'anser'. Did you mean 'answer'"),
            (with_arm(changes=[1]), "`changes`"),
            (with_arm(weights="weihts"), "unknown variable 'weihts'. Did you mean 'weights'"),
            (with_arm(compare_with="on"), "arm 'all': unknown arm 'on'"),
            (with_column(stage="evaluate"), "exactly one of figure, measure, share_of, mean_of, pooled_of"),
            (with_column(figure="a"), "both `stage` and `figure`"),
            (with_column(stage="evalute", figure="a"), "unknown stage 'evalute'. Did you mean 'evaluate'"),
            (with_column(measure="flop"), "unknown measure 'flop'. Did you mean 'flops'"),
            (with_column(measure="flops", unit="G"), "unknown unit 'G'"),
            (with_column(measure="flops", changes={"seed": 1}), "needs `stage`"),
            (with_column(mean_of=["y"]), "unknown column 'y'"),
            (with_column(**FIGURE, needs="ape"), "unknown variable 'ape'"),
            (with_column(**FIGURE, changes=1), "`changes`"),
            (with_column(**FIGURE, examples="b"), "both `examples` and `metric`"),
            (with_column(**FIGURE, examples="b", metric="f2"), "unknown metric 'f2'"),
            ({"x": "layer"}, "unknown variable 'layer'. Did you mean 'layers'"),
            ({"compare_with": "alle"}, "unknown arm 'alle'. Did you mean 'all'"),
            ({"teacher_stage": "theacher"}, "unknown stage 'theacher'"),
        ],
    ),
)
def test_fault_of_a_file_is_named(tmp_path, changes, message):
    with pytest.raises(ReportError, match="small_table.yaml") as error:
        Table.from_file(write_table(tmp_path, **changes))
    assert message in str(error.value)


def test_unknown_stage_in_the_changes_of_an_arm_is_named(tmp_path):
    table = Table.from_file(write_table(tmp_path, **with_arm(changes={"techer.max_steps": 1})))
    with pytest.raises(RecipeError, match="arm 'all'.*'techer'.*'teacher'"):
        table.make_recipe(table.arms["all"], tmp_path)


def test_recipe_of_a_table_may_have_a_base(tmp_path):
    (tmp_path / "more.yaml").write_text("{base: small.yaml, stages: {teacher: {max_steps: 7}}}")
    table = Table.from_file(write_table(tmp_path, recipe="more.yaml"))
    options = table.make_recipe(table.arms["one"], tmp_path, "normal").stages["teacher"].options
    assert (options["max_steps"], options["encoder_layers"], table.recipe_name) == (7, 1, "more")


def test_file_without_a_recipe_is_refused(tmp_path):
    path = tmp_path / "x.yaml"
    path.write_text("stages: {}\n")
    with pytest.raises(ReportError, match="it has no `recipe`"):
        Table.from_file(path)
    with pytest.raises(UsageError, match="y.yaml"):
        Table.from_file(tmp_path / "y.yaml")

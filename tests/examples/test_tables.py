"""All tables of `examples/reproduce`: options of their stages, folder of their data, and the figures of the papers."""

import functools

import pytest

from hf_mwp.commands.options.stages import options_of
from reproduce.reproduction import Reproduction
from reproduce.table import Table
from reproduce.table_result import TableResult
from tests.examples.scripts import EXAMPLES, check_data_dir, load_script
from tests.slow_parameters import slow_after, slow_except


TABLES = {path.stem.replace("_", "-"): path for path in sorted((EXAMPLES / "reproduce").glob("*.yaml"))}
STARK = [name for name in TABLES if name.startswith("stark")]
TASKS = "mnli_m mnli_mm mrpc qnli qqp rte stsb sst2".split()
SWITCHES = ("large_tasks", "paper_protocol", "mrpc", "stsb")


@functools.cache
def table_of(name):
    return Table.from_file(TABLES[name])


def papers(name):
    return {arm.name: dict(arm.paper) for arm in table_of(name).arms.values()}


def check_options(stages):
    for stage in stages:
        assert set(stage.options) <= set(options_of(stage.command)), stage.name


@pytest.mark.parametrize("name", slow_except(TABLES, "cka-math", "compact-table1", "stark-table4"))
def test_stages_have_options_of_their_commands_and_the_folder_of_the_data(name, tmp_path):
    table = table_of(name)
    changes = {"data_dir": "/my/data"} if "data_dir" in table.recipe["variables"] else {}
    reproduction = Reproduction(table, tmp_path, "quick", changes=changes)
    for (arm, seed), recipe in reproduction.recipes.items():
        check_options(reproduction.stages(arm, seed))
        if changes:
            check_data_dir(recipe)
        if name in STARK:
            assert "the same as" not in str(reproduction.obstacle(table.arms[arm], seed))


@pytest.mark.parametrize("name", slow_after(1, STARK))
def test_stages_of_optional_columns_have_options_of_their_commands(name, tmp_path):
    table = table_of(name)
    changes = {switch: True for switch in SWITCHES if switch in table.content.get("variables", {})}
    reproduction = Reproduction(table, tmp_path, "paper", seeds=[42], changes=changes)
    check_options(reproduction.stages(next(iter(table.arms)), 42))


@pytest.mark.parametrize(
    "name", slow_after(1, ["stark-table2", "stark-table3", "stark-table5", "stark-table6", "stark-table7"])
)
def test_averages_of_the_paper_are_those_of_its_figures(name):
    rows = [row for row in papers(name).values() if row.keys() >= set(TASKS)]
    assert len(rows) >= 3
    for row in rows:
        assert row["average"] == pytest.approx(sum(row[task] for task in TASKS) / 8, abs=0.1)


@pytest.mark.parametrize(
    ("name", "arms"),
    [
        ("stark-table5", {"teacher": "teacher", "kd": "kd", "kd-stark": "stark", "pkd": "pkd", "ckd": "ckd"}),
        ("stark-table6", {"teacher": "teacher", "kd": "kd", "stark": "stark"}),
        ("stark-table7", {"stark": "stark", "auto": "auto"}),
        ("stark-table3", {"bert": "teacher"}),
    ],
)
def test_tables_agree_on_their_common_rows(name, arms):
    for arm, arm_of_table_2 in arms.items():
        assert papers(name)[arm] == papers("stark-table2")[arm_of_table_2]


def test_figures_of_the_paper():
    rows = papers("stark-table2")
    columns = [*TASKS, "average", "rte_sparsity", "mrpc_sparsity", "stsb_sparsity"]
    figures = [rows["stark"][column] for column in columns]
    assert figures == [78.8, 79.0, 87.4, 85.7, 86.5, 67.5, 87.2, 90.6, 82.8, 60, 50, 40]
    assert rows["metakd"] == {"mrpc": 85.1, "rte": 63.9, "stsb": 86.5, "sst2": 89.5}
    assert papers("stark-table4") == {"trial": {"mnli": 2.5}, "actual": {"mnli": 7}}


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("name", STARK)
def test_each_table_runs_at_the_quick_budget(name, tmp_path, shared_data):
    data = [] if name == "stark-math" else ["--data_dir", str(shared_data / "glue")]
    main = load_script("reproduce.py").main
    assert main([name, "--budget", "quick", "--output_dir", str(tmp_path), *data]) == 0
    result = TableResult.load(tmp_path / f"{name}-quick.json")
    for arm in result.arms:
        for run in arm.runs:
            assert run.state in ("done", "skipped")

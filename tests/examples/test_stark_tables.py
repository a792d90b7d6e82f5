"""The tables of sparse teachers: their options, the paper's figures, and one of them run."""

import pytest

from hf_mwp.commands.options.stages import options_of
from reproduce.reproduction import Reproduction
from reproduce.table import Table
from reproduce.table_result import TableResult
from tests.examples.scripts import load_script


SCRIPT = load_script("reproduce.py")
ON_GLUE = [f"stark-table{number}" for number in range(2, 8)]
NAMES = [*ON_GLUE, "stark-lambda", "stark-pilot", "stark-math"]
TASKS = ["mnli_m", "mnli_mm", "mrpc", "qnli", "qqp", "rte", "stsb", "sst2"]
SWITCHES = ("large_tasks", "paper_protocol", "mrpc", "stsb")


def load(name):
    return Table.from_file(SCRIPT.TABLES[name])


def papers(name):
    return {arm.name: dict(arm.paper) for arm in load(name).arms.values()}


@pytest.mark.parametrize("name", NAMES)
def test_stages_have_options_of_their_commands_and_no_arm_is_another_one(name, tmp_path):
    table = load(name)
    changes = {switch: True for switch in SWITCHES if switch in table.content.get("variables", {})}
    quick = Reproduction(table, tmp_path, "quick")
    of_all_columns = Reproduction(table, tmp_path, "paper", seeds=[42], changes=changes)
    stages = [stage for arm, seed in quick.recipes for stage in quick.stages(arm, seed)]
    for stage in [*stages, *of_all_columns.stages(next(iter(table.arms)), 42)]:
        unknown = set(stage.options) - set(options_of(stage.command))
        assert not unknown, f"stage {stage.name}: {unknown}"
    obstacles = [str(quick.obstacle(table.arms[arm], seed)) for arm, seed in quick.recipes]
    assert not [obstacle for obstacle in obstacles if "the same as" in obstacle]


@pytest.mark.parametrize("name", ["stark-table2", "stark-table3", "stark-table5", "stark-table6", "stark-table7"])
def test_the_papers_averages_are_those_of_its_figures(name):
    rows = {arm: row for arm, row in papers(name).items() if {*TASKS} <= {*row}}
    assert len(rows) >= 3
    for arm, row in rows.items():
        assert row["average"] == pytest.approx(sum(row[task] for task in TASKS) / 8, abs=0.1), arm


def test_tables_agree_on_the_rows_that_they_share():
    tables = {name: papers(name) for name in ON_GLUE}
    for name, arm, first in (
        ("stark-table5", "teacher", "teacher"),
        ("stark-table5", "kd", "kd"),
        ("stark-table5", "kd-stark", "stark"),
        ("stark-table5", "pkd", "pkd"),
        ("stark-table5", "ckd", "ckd"),
        ("stark-table6", "teacher", "teacher"),
        ("stark-table6", "kd", "kd"),
        ("stark-table6", "stark", "stark"),
        ("stark-table7", "stark", "stark"),
        ("stark-table7", "auto", "auto"),
        ("stark-table3", "bert", "teacher"),
    ):
        assert tables[name][arm] == tables["stark-table2"][first]
    stark = [78.8, 79.0, 87.4, 85.7, 86.5, 67.5, 87.2, 90.6, 82.8, 60, 50, 40]
    columns = [*TASKS, "average", "rte_sparsity", "mrpc_sparsity", "stsb_sparsity"]
    assert [tables["stark-table2"]["stark"][column] for column in columns] == stark
    assert tables["stark-table2"]["metakd"] == {"mrpc": 85.1, "rte": 63.9, "stsb": 86.5, "sst2": 89.5}
    assert tables["stark-table4"] == {"trial": {"mnli": 2.5}, "actual": {"mnli": 7}}


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("name", NAMES)
def test_each_table_runs_quickly(name, tmp_path, shared_data):
    data = [] if name == "stark-math" else ["--data_dir", str(shared_data / "glue")]
    assert SCRIPT.main([name, "--budget", "quick", "--output_dir", str(tmp_path), *data]) == 0
    result = TableResult.load(tmp_path / f"{name}-quick.json")
    assert {run.state for arm in result.arms for run in arm.runs} <= {"done", "skipped"}

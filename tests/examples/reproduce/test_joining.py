"""Joining results that were measured separately into one table."""

import dataclasses

import pytest

from reproduce.markdown import to_markdown
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult, join_results
from tests.examples.reproduce.grids import Commands, write_table
from tests.slow_parameters import slow_after


# Arms `one`, `three` and `all` have 1, 3 and 12 layers of 16, and a seed adds its hundredths.
SEEDS = [42, 43]


@pytest.fixture
def measure(tmp_path):
    """Runs the table in a folder of its own and saves the results."""
    table = Table.from_file(write_table(tmp_path))

    def measure(name, **options):
        options = {"seeds": SEEDS} | options
        result = Reproduction(table, tmp_path / name, **options).run(Commands())
        path = tmp_path / f"{name}.json"
        result.save(path)
        return path

    return measure


def runs(result):
    """The runs of all arms, without their times."""
    rows = []
    for arm in result.arms:
        for run in arm.runs:
            rows.append((arm.name, run.seed, run.state, run.figures, run.counts))
    return rows


@pytest.mark.parametrize(
    "parts",
    slow_after(
        1,
        [
            [{"seeds": [42]}, {"seeds": [43], "arms": ["one"]}, {"seeds": [43], "arms": ["three", "all"]}],
            # The same figures twice.
            [{"arms": ["one", "all"]}, {}],
        ],
    ),
    ids=["parts", "repeated"],
)
def test_joined_results_equal_the_whole(measure, parts):
    whole = TableResult.load(measure("whole"))
    paths = [measure(f"part{index}", **options) for index, options in enumerate(parts)]
    joined = join_results(paths)
    assert runs(joined) == runs(whole)
    assert dataclasses.replace(joined, arms=whole.arms, parts=whole.parts) == whole
    # The share of another arm is unknown in results without it.
    assert joined.arms[0].runs[0].figures == {"answer": 6.25, "share": 8.3333, "average": 7.2916}


@pytest.mark.slow
def test_columns_of_several_files_are_joined(measure):
    joined = join_results([measure("one"), measure("extra", changes={"extra": "x"})])
    for column in joined.columns:
        assert "missing" not in column
    assert joined.arms[2].runs[0].figures == {"answer": 75.0, "extra": 75.0, "share": 100.0, "average": 87.5}


@pytest.mark.slow
def test_each_part_is_described_with_its_machine(measure, tmp_path):
    path = measure("first", seeds=[42])
    second_path = measure("second", seeds=[43], changes={"extra": "x"})
    machine = {"processor": "abacus", "torch_threads": 2, "cores": 4}
    environment = {"machine": machine, "libraries": {"torch": "2.11"}}
    first = dataclasses.replace(TableResult.load(path), data="rte, all problems", environment=environment)
    first.save(path)
    joined = join_results([path, second_path])
    machine = "abacus, 2 threads on 4 cores, no accelerator; torch 2.11"
    lines = to_markdown(joined).splitlines()
    assert f"- Measured apart: seed 42 of Answer: all rows. Machine: {machine}" in lines
    assert "- Measured apart: seed 43 of Answer, Extra: all rows, changed: extra x." in lines
    joined.parts[1]["arms"] = ["first layer", "three"]
    line = "- Measured apart: seed 43 of Answer, Extra: first layer; three, changed: extra x."
    assert line in to_markdown(joined).splitlines()
    # Joined results can be joined with further ones.
    joined.save(tmp_path / "joined.json")
    assert TableResult.load(tmp_path / "joined.json") == joined
    more = join_results([tmp_path / "joined.json", measure("third", seeds=[44])])
    assert joined.data == more.data == f"rte, all problems; {TableResult.load(second_path).data}"
    assert more.seeds == [42, 43, 44]
    assert more.parts[:2] == joined.parts
    assert len(more.parts) == 3


@pytest.mark.slow
def test_failed_arm_is_completed_by_another_part(measure, tmp_path):
    table = Table.from_file(tmp_path / "small_table.yaml")
    Reproduction(table, tmp_path / "broken", seeds=[42]).run(Commands("teacher")).save(tmp_path / "broken.json")
    run = join_results([tmp_path / "broken.json", measure("whole", seeds=[42])]).arms[1].runs[0]
    assert (run.state, run.reason, run.figures["answer"]) == ("done", "", 18.75)


def test_different_figures_of_the_same_run_are_refused(measure):
    path = measure("first", arms=["one"])
    result = TableResult.load(path)
    result.arms[0].runs[1].figures["answer"] = 9.0
    changed_path = path.with_name("second.json")
    result.save(changed_path)
    message = r"second.json: arm 'one', seed 43, has 9.0 .* 'answer', .*first.json has 7.25"
    with pytest.raises(ReportError, match=message):
        join_results([path, changed_path])


@pytest.mark.parametrize(
    ("field", "value"),
    slow_after(2, [("table", "compact-table8"), ("columns", []), ("budget", "quick"), ("arms", [])]),
)
def test_results_of_another_table_are_refused(measure, field, value):
    path = measure("first", arms=["one"])
    changed_path = path.with_name("second.json")
    dataclasses.replace(TableResult.load(path), **{field: value}).save(changed_path)
    with pytest.raises(ReportError, match=f"differ in the {field}"):
        join_results([path, changed_path])

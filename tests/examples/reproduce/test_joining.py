"""Results that were measured apart, as one table."""

import dataclasses

import pytest

from reproduce.markdown import to_markdown
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import TableResult, join_results
from tests.examples.reproduce.grids import Commands, write_table


# Arms `one`, `three` and `all` have 1, 3 and 12 layers of 16, and a seed adds its hundredths.
SEEDS = [42, 43]


@pytest.fixture
def measure(tmp_path):
    """Runs the table in a folder of its own and saves the results."""
    table = Table.from_file(write_table(tmp_path))

    def measure(name, **options):
        result = Reproduction(table, tmp_path / name, **{"seeds": SEEDS, **options}).run(Commands())
        path = tmp_path / f"{name}.json"
        result.save(path)
        return path

    return measure


def figures(result):
    return [(arm.name, [(run.seed, run.state, run.figures, run.counts) for run in arm.runs]) for arm in result.arms]


@pytest.mark.parametrize(
    "parts",
    [
        [{"seeds": [42]}, {"seeds": [43]}],
        [{"arms": ["one", "three"]}, {"arms": ["all"]}],
        [{"seeds": [42]}, {"seeds": [43], "arms": ["one"]}, {"seeds": [43], "arms": ["three", "all"]}],
        # The same figures twice.
        [{"arms": ["one", "all"]}, {}],
    ],
    ids=["seeds", "arms", "both", "twice"],
)
def test_parts_joined_are_the_whole(measure, parts):
    whole = TableResult.load(measure("whole"))
    joined = join_results([measure(f"part{place}", **part) for place, part in enumerate(parts)])
    assert figures(joined) == figures(whole)
    assert [run.seconds for arm in joined.arms for run in arm.runs] == pytest.approx([0.0] * 6, abs=5.0)
    told = ("arms", "parts")
    assert dataclasses.asdict(joined) | dict.fromkeys(told) == dataclasses.asdict(whole) | dict.fromkeys(told)
    # Shares of another arm were not known in a part without it.
    assert joined.arms[0].runs[0].figures == {"answer": 6.25, "share": 8.3333, "average": 7.2916}


def test_columns_of_several_files_stand_in_one_row(measure):
    joined = join_results([measure("one"), measure("extra", changes={"extra": "x"})])
    assert all("missing" not in column for column in joined.columns)
    assert joined.arms[2].runs[0].figures == {"answer": 75.0, "extra": 75.0, "share": 100.0, "average": 87.5}


def test_each_part_is_told_with_its_machine(measure, tmp_path):
    path, other = measure("first", seeds=[42]), measure("second", seeds=[43], changes={"extra": "x"})
    first = dataclasses.replace(TableResult.load(path), data="rte, all problems")
    machine = {"processor": "abacus", "torch_threads": 2, "cores": 4}
    dataclasses.replace(first, environment={"machine": machine, "libraries": {"torch": "2.11"}}).save(path)
    joined = join_results([path, other])
    machine = "abacus, 2 threads on 4 cores, no accelerator; torch 2.11"
    told = to_markdown(joined).splitlines()
    assert f"- Measured apart: seed 42 of Answer: all rows. Machine: {machine}" in told
    assert "- Measured apart: seed 43 of Answer, Extra: all rows, changed: extra x." in told
    fewer = dataclasses.replace(joined, parts=[joined.parts[0], joined.parts[1] | {"arms": ["first layer", "three"]}])
    line = "- Measured apart: seed 43 of Answer, Extra: first layer; three, changed: extra x."
    assert line in to_markdown(fewer).splitlines()
    # What was joined can be joined with more, and read again.
    joined.save(tmp_path / "joined.json")
    data = TableResult.load(other).data
    more = join_results([tmp_path / "joined.json", measure("third", seeds=[44])])
    assert joined.data == more.data == f"rte, all problems; {data}"
    assert more.seeds == [42, 43, 44] and more.parts[:2] == joined.parts and len(more.parts) == 3
    assert TableResult.load(tmp_path / "joined.json") == joined


def test_an_arm_that_one_part_could_not_run_is_done_by_the_other(measure, tmp_path):
    table = Table.from_file(tmp_path / "small_table.yaml")
    Reproduction(table, tmp_path / "broken", seeds=[42]).run(Commands("teacher")).save(tmp_path / "broken.json")
    run = join_results([tmp_path / "broken.json", measure("whole", seeds=[42])]).arms[1].runs[0]
    assert (run.state, run.reason, run.figures["answer"]) == ("done", "", 18.75)


def test_two_figures_of_the_same_are_refused(measure):
    path, other = measure("first", arms=["one"]), measure("second", arms=["one"])
    result = TableResult.load(other)
    result.arms[0].runs[1].figures["answer"] = 9.0
    result.save(other)
    with pytest.raises(
        ReportError, match=r"second.json: arm 'one', seed 43, has 9.0 .* 'answer', .*first.json has 7.25"
    ):
        join_results([path, other])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"table": "compact-table8"}, "differ in the table"),
        ({"budget": "quick"}, "differ in the budget"),
        ({"columns": []}, "differ in the columns"),
        ({"arms": []}, "differ in the arms"),
    ],
)
def test_other_tables_are_refused(measure, changes, message):
    path, other = measure("first", arms=["one"]), measure("second", arms=["one"])
    dataclasses.replace(TableResult.load(other), **changes).save(other)
    with pytest.raises(ReportError, match=message):
        join_results([path, other])

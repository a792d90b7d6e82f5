"""Results as JSON, Markdown and picture."""

import dataclasses
import json

import pytest

from reproduce import picture
from reproduce.markdown import to_markdown
from reproduce.picture import draw_table
from reproduce.reproduction import Reproduction
from reproduce.table import ReportError, Table
from reproduce.table_result import ArmResult, ArmRun, TableResult
from tests.examples.reproduce.grids import Commands, write_table
from tests.examples.scripts import load_script


def result(budget="cpu"):
    runs = [
        ArmRun(
            seed,
            "done",
            {"answer": answer},
            {"answer": count, "size": 1548},
            seconds,
            [{"fingerprint": str(seed), "seconds": seconds}],
            "BERT",
        )
        for seed, answer, count, seconds in ((1, 60.0, 1000, 12.4), (2, 63.0, 932, 13.4))
    ]
    return TableResult(
        table="compact-table9",
        title="A title",
        paper="Table 9 of nobody",
        note="A note\nof two lines.",
        budget=budget,
        seeds=[1, 2],
        columns=[
            {"name": "answer", "title": "Answer", "unit": "%"},
            {"name": "size", "title": "Size", "unit": "M"},
            {"name": "ape", "title": "Ape", "unit": "%", "missing": "no data"},
        ],
        arms=[
            ArmResult("a", "first | arm", {"answer": 71.04}, "its note", runs),
            ArmResult(
                "b", "second", {"answer": 84.3, "ape": 1.0}, "", [ArmRun(1, "failed", {"size": 10.28}, reason="no")]
            ),
            ArmResult("c", "third", runs=[ArmRun(1), ArmRun(2)]),
        ],
        data="math23k, all training problems",
        changes={"layers": 6},
        environment={
            "machine": {"processor": "x86_64", "torch_threads": 1, "cores": 2},
            "libraries": {"torch": "2.1"},
        },
    )


def test_markdown_in_full():
    assert (
        to_markdown(result(), "t.png")
        == """\
# A title

Paper: Table 9 of nobody. Command: `python examples/reproduce.py compact-table9`.

| arm | Answer, % | paper | Size, M | seconds |
| --- | ---: | ---: | ---: | ---: |
| first / arm | 61.50 ± 2.12 | 71.04 | - | 13 |
| second | - | 84.30 | 10.3 | - |
| third | - | - | - | - |

A note of two lines.

- first | arm: its note
- No column Ape: no data
- second, seed 1: failed: no
- Not run: third

- Budget: cpu, changed: layers 6
- Teacher: BERT
- Data: math23k, all training problems; figures on 932 to 1,000 problems (Answer), 1,548 (Size)
- Seeds: 1, 2, mean ± standard deviation
- Time: 26 seconds for all stages, each once (an arm's seconds have those it shares)
- Machine: x86_64, 1 threads on 2 cores, no accelerator; torch 2.1

![A title](t.png)
"""
    )


def test_quick_results_say_so_in_the_first_line():
    first = to_markdown(result("quick")).splitlines()[0]
    assert first == "# A title (budget quick: only to see it run, these figures say nothing)"
    assert "quick" not in to_markdown(result())


def test_quick_results_say_so_in_json_and_on_the_terminal(tmp_path):
    path = tmp_path / "r.json"
    result("quick").save(path)
    told = "budget quick: only to see it run, these figures say nothing"
    assert json.loads(path.read_text())["caution"] == told
    assert TableResult.load(path) == result("quick")
    shown = [load_script("reproduce.py").result_table(each).caption for each in (result("quick"), result())]
    assert shown == [told, None]
    result().save(path)
    assert "caution" not in json.loads(path.read_text())


def test_json_comes_back_as_it_was(tmp_path):
    path = tmp_path / "folder" / "r.json"
    result().save(path)
    loaded = TableResult.load(path)
    assert loaded == result() and to_markdown(loaded) == to_markdown(result())
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]


def test_results_of_a_run_come_back_as_they_were(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    measured = Reproduction(table, tmp_path / "runs", seeds=[42, 43]).run(Commands(broken="teacher"))
    measured.save(tmp_path / "r.json")
    assert dataclasses.asdict(TableResult.load(tmp_path / "r.json")) == dataclasses.asdict(measured)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "has no table results"),
        ("[]", "has no table results"),
        ("{}", "has no table results"),
        (None, "There is no file"),
    ],
)
def test_other_files_are_no_results(tmp_path, content, message):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ReportError, match=message):
        TableResult.load(path)


def test_results_of_another_version_are_refused(tmp_path):
    path = tmp_path / "r.json"
    result().save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 0}))
    with pytest.raises(ReportError, match="another version"):
        TableResult.load(path)


def test_the_same_results_give_the_same_picture(tmp_path):
    assert draw_table(result(), tmp_path / "a.png")
    result().save(tmp_path / "r.json")
    assert draw_table(TableResult.load(tmp_path / "r.json"), tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_metrics_without_a_unit_are_drawn_and_other_figures_are_not(tmp_path):
    measured = result()
    measured.columns = [{"name": "answer", "title": "BLEU", "unit": ""}]
    assert draw_table(measured, tmp_path / "bleu.png")
    measured.columns[0]["optional"] = True
    assert not draw_table(measured, tmp_path / "optional.png")
    measured.columns = [{"name": "answer", "title": "Parameters", "unit": "M"}]
    assert not draw_table(measured, tmp_path / "parameters.png")


def test_differences_from_one_arm_are_drawn_unless_the_paper_has_figures(tmp_path, monkeypatch):
    drawn = []
    for kind in ("bars", "differences"):
        monkeypatch.setattr(picture, f"_draw_{kind}", lambda *_, kind=kind: drawn.append(kind))
    compared = result()
    compared.arms[1].runs = [ArmRun(seed, "done", {"answer": 59.0}) for seed in (1, 2)]
    draw_table(compared, tmp_path / "a.png")
    compared.compare_with = "b"
    draw_table(compared, tmp_path / "a.png")
    for arm in compared.arms:
        arm.paper = {}
    draw_table(compared, tmp_path / "a.png")
    assert drawn == ["bars", "bars", "differences"]
    monkeypatch.undo()
    assert draw_table(compared, tmp_path / "a.png")


def test_a_sweep_is_drawn_as_lines(tmp_path):
    bars, lines = result(), result()
    lines.x = "layers"
    for place, arm in enumerate(lines.arms):
        arm.x = float(place)
    for name, each in (("bars", bars), ("lines", lines)):
        assert draw_table(each, tmp_path / f"{name}.png")
    assert (tmp_path / "lines.png").read_bytes() != (tmp_path / "bars.png").read_bytes()
    lines.save(tmp_path / "r.json")
    assert draw_table(TableResult.load(tmp_path / "r.json"), tmp_path / "again.png")
    assert (tmp_path / "lines.png").read_bytes() == (tmp_path / "again.png").read_bytes()


def test_differences_of_arms_are_told_with_their_intervals():
    compared = result()
    compared.compare_with = "b"
    compared.arms[1].runs = [
        ArmRun(seed, "done", {"answer": answer}) for seed, answer in ((1, 59.0), (2, 60.0), (3, 9.0))
    ]
    told = to_markdown(compared).splitlines()
    at = told.index("| difference, 95 % interval | Answer, % |")
    assert told[at + 2 : at + 5] == [
        "| first / arm minus second | **+2.00 (+1.00 to +3.00)** |",
        "",
        "Bold: the interval does not contain 0. Bootstrap over pairs: 2 seeds.",
    ]
    assert "Bootstrap" not in to_markdown(result())
    compared.arms[1].compare_with = f"{compared.arms[0].name} b"
    assert "| second minus first / arm | **-2.00 (-3.00 to -1.00)** |" in to_markdown(compared).splitlines()


def test_results_without_a_teacher_name_none():
    alone = result()
    for arm in alone.arms:
        for run in arm.runs:
            run.teacher = ""
    assert "Teacher" not in to_markdown(alone)


def test_each_teacher_is_named_once():
    several = result()
    runs = [run for arm in several.arms for run in arm.runs]
    for run in runs:
        run.teacher = "one"
    runs[0].teacher = "two; one"
    assert "- Teacher: two; one" in to_markdown(several).splitlines()


def test_without_figures_there_is_no_picture(tmp_path):
    empty = dataclasses.replace(result(), columns=[{"name": "size", "title": "Size", "unit": "M"}])
    assert not draw_table(empty, tmp_path / "a.png") and not (tmp_path / "a.png").exists()
    written = load_script("reproduce.py").write_report(empty, tmp_path, "sizes")
    assert written == ["sizes.json", "sizes.md"] and {path.name for path in tmp_path.iterdir()} == {*written}

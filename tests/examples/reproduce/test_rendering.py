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


def make_run(seed, answer, num_problems, seconds):
    return ArmRun(
        seed,
        "done",
        figures={"answer": answer},
        counts={"answer": num_problems, "size": 1548},
        seconds=seconds,
        stages=[{"fingerprint": str(seed), "seconds": seconds}],
        teacher="BERT",
    )


@pytest.fixture
def result():
    runs = [make_run(1, 60.0, 1000, 12.4), make_run(2, 63.0, 932, 13.4)]
    failed = ArmRun(1, "failed", {"size": 10.28}, reason="no")
    machine = {"processor": "x86_64", "torch_threads": 1, "cores": 2}
    return TableResult(
        table="compact-table9",
        title="A title",
        paper="Table 9 of nobody",
        note="A note\nof two lines.",
        budget="cpu",
        seeds=[1, 2],
        columns=[
            {"name": "answer", "title": "Answer", "unit": "%"},
            {"name": "size", "title": "Size", "unit": "M"},
            {"name": "ape", "title": "Ape", "unit": "%", "missing": "no data"},
        ],
        arms=[
            ArmResult("a", "first | arm", {"answer": 71.04}, "its note", runs),
            ArmResult("b", "second", {"answer": 84.3, "ape": 1.0}, "", [failed]),
            ArmResult("c", "third", runs=[ArmRun(1), ArmRun(2)]),
        ],
        data="math23k, all training problems",
        changes={"layers": 6},
        environment={"machine": machine, "libraries": {"torch": "2.1"}},
    )


def test_markdown_in_full(result):
    assert (
        to_markdown(result, "t.png")
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


def test_quick_results_have_a_caution(result, tmp_path):
    path = tmp_path / "r.json"
    result_table = load_script("reproduce.py").result_table
    result.save(path)
    assert "caution" not in json.loads(path.read_text())
    assert result_table(result).caption is None
    quick = dataclasses.replace(result, budget="quick")
    quick.save(path)
    caution = "budget quick: only to see it run, these figures say nothing"
    assert json.loads(path.read_text())["caution"] == caution
    assert result_table(quick).caption == caution
    assert to_markdown(quick).startswith(f"# A title ({caution})\n")


def test_loaded_results_equal_the_saved_ones(tmp_path):
    table = Table.from_file(write_table(tmp_path))
    measured = Reproduction(table, tmp_path / "runs", seeds=[42, 43]).run(Commands(broken="teacher"))
    path = tmp_path / "folder" / "r.json"
    measured.save(path)
    loaded = TableResult.load(path)
    assert dataclasses.asdict(loaded) == dataclasses.asdict(measured)
    assert to_markdown(loaded) == to_markdown(measured)
    assert [file.name for file in path.parent.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("content", "message"), [("{", "no table results"), ("[]", "no table results"), (None, "no file")]
)
def test_file_without_results_is_refused(tmp_path, content, message):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ReportError, match=message):
        TableResult.load(path)


def test_results_of_another_version_are_refused(result, tmp_path):
    path = tmp_path / "r.json"
    result.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 0}))
    with pytest.raises(ReportError, match="another version"):
        TableResult.load(path)


def test_picture_is_drawn_of_the_results_alone(result, tmp_path):
    for name in ("a.png", "b.png"):
        assert draw_table(result, tmp_path / name)
    content = (tmp_path / "a.png").read_bytes()
    assert content.startswith(b"\x89PNG")
    assert (tmp_path / "b.png").read_bytes() == content


@pytest.fixture
def drawn(monkeypatch):
    """The kinds of pictures that are drawn, which are left empty."""
    names = []
    for name in ("bars", "differences", "lines"):
        monkeypatch.setattr(picture, f"_draw_{name}", lambda *_, name=name: names.append(name))
    return names


@pytest.mark.parametrize(
    ("column", "is_drawn"),
    [
        ({"title": "BLEU", "unit": ""}, True),
        ({"title": "BLEU", "unit": "", "optional": True}, False),
        ({"title": "Parameters", "unit": "M"}, False),
    ],
)
def test_only_metrics_are_drawn(result, drawn, tmp_path, column, is_drawn):
    result.columns = [{"name": "answer", **column}]
    assert draw_table(result, tmp_path / "a.png") == is_drawn
    assert (tmp_path / "a.png").exists() == is_drawn
    assert drawn == ["bars"] * is_drawn


def test_differences_from_one_arm_are_drawn_unless_the_paper_has_figures(result, drawn, tmp_path):
    result.arms[1].runs = [ArmRun(seed, "done", {"answer": 59.0}) for seed in (1, 2)]
    draw_table(result, tmp_path / "a.png")
    result.compare_with = "b"
    draw_table(result, tmp_path / "a.png")
    for arm in result.arms:
        arm.paper = {}
    draw_table(result, tmp_path / "a.png")
    assert drawn == ["bars", "bars", "differences"]


@pytest.mark.slow
def test_sweep_is_drawn_as_lines(result, tmp_path):
    result.x = "layers"
    for index, arm in enumerate(result.arms):
        arm.x = float(index)
    assert draw_table(result, tmp_path / "lines.png")
    result.save(tmp_path / "r.json")
    assert draw_table(TableResult.load(tmp_path / "r.json"), tmp_path / "again.png")
    assert (tmp_path / "lines.png").read_bytes() == (tmp_path / "again.png").read_bytes()


def test_differences_of_arms_have_intervals(result):
    assert "Bootstrap" not in to_markdown(result)
    result.compare_with = "b"
    answers = {1: 59.0, 2: 60.0, 3: 9.0}
    result.arms[1].runs = [ArmRun(seed, "done", {"answer": answer}) for seed, answer in answers.items()]
    page = to_markdown(result)
    assert "| first / arm minus second | **+2.00 (+1.00 to +3.00)** |" in page
    assert "Bootstrap over pairs: 2 seeds." in page
    result.arms[1].compare_with = "a b"
    assert "| second minus first / arm | **-2.00 (-3.00 to -1.00)** |" in to_markdown(result)


@pytest.mark.parametrize(("teachers", "line"), [(["", ""], None), (["two; one", "one"], "- Teacher: two; one")])
def test_each_teacher_is_named_once(result, teachers, line):
    for run, teacher in zip(result.arms[0].runs, teachers, strict=True):
        run.teacher = teacher
    lines = to_markdown(result).splitlines()
    assert [text for text in lines if "Teacher" in text] == [line] * (line is not None)


def test_command_of_another_script_is_named(result):
    result.command = "python examples/other.py"
    assert "Command: `python examples/other.py`." in to_markdown(result)


def test_report_without_figures_has_no_picture(result, tmp_path):
    result.columns = [{"name": "size", "title": "Size", "unit": "M"}]
    files = load_script("reproduce.py").write_report(result, tmp_path, "sizes")
    assert files == ["sizes.json", "sizes.md"]
    assert {path.name for path in tmp_path.iterdir()} == set(files)

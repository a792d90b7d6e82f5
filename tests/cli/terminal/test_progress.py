import io

import pytest
from rich.console import Console

from hf_mwp.cli.terminal import counting_bar as module
from hf_mwp.cli.terminal.console import CommandConsole
from hf_mwp.cli.terminal.counting_bar import counting_bar
from hf_mwp.cli.terminal.progress import RichProgressCallback


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=80)


def lines(console):
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("seconds", "shown"), [(60, []), (-1, [f"teacher cache: {n} of 6, 0 s" for n in (2, 4, 6)])])
def test_a_long_teacher_cache_prints_lines_without_a_terminal(seconds, shown, console, monkeypatch):
    monkeypatch.setattr(module, "LINE_SECONDS", seconds)
    callback = RichProgressCallback(console, "student")
    for done in (2, 4, 6):
        callback.on_teacher_cache(None, None, None, done=done, total=6)
    assert lines(console) == [*shown, "teacher cache: 6 of 6, 0 s"]


@pytest.mark.parametrize(("seconds", "shown"), [(60, []), (-1, ["tagging: 2 of 6, 0 s", "tagging: 6 of 6, 0 s"])])
def test_a_long_count_prints_lines_without_a_terminal(seconds, shown, console, monkeypatch):
    monkeypatch.setattr(module, "LINE_SECONDS", seconds)
    with counting_bar(console, "tagging") as count:
        count(2, 6)
        count(6, 6)
    assert lines(console) == [*shown, "tagging: 6 of 6, 0 s"]


def test_batches_are_counted_with_and_without_a_terminal():
    for options, shown in (({}, ["Solving: 3 of 3, 0 s"]), ({"quiet": True}, [])):
        console = CommandConsole(file=io.StringIO(), width=80, **options)
        assert list(console.progress()("abc")) == ["a", "b", "c"]
        assert lines(console) == shown
    console = CommandConsole(file=io.StringIO(), width=80, force_terminal=True)
    assert list(console.progress("Scoring")("abc")) == ["a", "b", "c"]
    assert "Scoring" in console.file.getvalue() and "3/3" in console.file.getvalue()

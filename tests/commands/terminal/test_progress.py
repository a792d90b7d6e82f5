import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from hf_mwp.commands.terminal import counting_bar as counting_bar_module
from hf_mwp.commands.terminal import progress
from hf_mwp.commands.terminal.console import CommandConsole, make_table
from hf_mwp.commands.terminal.counting_bar import counting_bar
from hf_mwp.commands.terminal.progress import RichProgressCallback


@pytest.fixture
def console():
    return Console(file=io.StringIO(), width=80)


def lines(console):
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize(("seconds", "numbers"), [(60, []), (-1, [2, 4, 6, 6])])
def test_slow_teacher_cache_prints_lines_without_a_terminal(seconds, numbers, console, monkeypatch):
    monkeypatch.setattr(counting_bar_module, "LINE_SECONDS", seconds)
    callback = RichProgressCallback(console, "student")
    for done in (2, 4, 6):
        callback.on_teacher_cache(None, None, None, done=done, total=6)
    assert lines(console) == [f"teacher cache: {number} of 6, 0 s" for number in numbers]


def test_batches_are_counted_with_and_without_a_terminal():
    for options in ({}, {"quiet": True}):
        console = CommandConsole(file=io.StringIO(), width=80, **options)
        assert list(console.progress()("abc")) == ["a", "b", "c"]
        assert lines(console) == []
    console = CommandConsole(file=io.StringIO(), width=80, force_terminal=True)
    assert list(console.progress("Scoring")("abc")) == ["a", "b", "c"]
    assert "Scoring" in console.file.getvalue()
    assert "3/3" in console.file.getvalue()


STATE = SimpleNamespace(global_step=7, max_steps=40, epoch=1.0)


@pytest.mark.parametrize(("seconds", "expected"), [(60, []), (-1, ["student  step 7/40, 0 s"])])
def test_training_prints_a_line_each_minute_without_a_terminal(seconds, expected, console, monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", seconds)
    callback = RichProgressCallback(console, "student")
    callback.on_train_begin(None, STATE, None)
    callback.on_step_end(None, STATE, None)
    callback.on_train_end(None, STATE, None)
    assert lines(console) == expected
    callback.on_log(None, STATE, None, logs={"loss": 0.5})
    assert lines(console) == [*expected, "student  step 7/40, loss 0.500, 0 s"]


NAME = "mawps:train: [red]:smile:[/red] [link=x]"


def test_markup_in_a_name_is_printed_as_text():
    console = CommandConsole(file=io.StringIO(), width=120)
    console.print(NAME)
    console.print(make_table(NAME, (NAME, NAME + "2"), [(NAME, "1")]))
    console.rule(NAME)
    assert console.file.getvalue().count(NAME) == 6


def test_markup_in_the_name_of_a_progress_bar_is_shown_as_text():
    console = CommandConsole(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    with counting_bar(console, NAME) as count:
        count(2, 6)
    assert NAME in console.file.getvalue()
    console.file.truncate(0)
    callback = RichProgressCallback(console, NAME)
    callback.on_train_begin(None, STATE, None)
    callback.on_log(None, STATE, None, logs={"loss": 0.5})
    callback.on_train_end(None, STATE, None)
    assert f"{NAME}  loss 0.500" in console.file.getvalue()

import sys

import pytest

from hf_mwp.runs.recipes import run_recipe
from hf_mwp.runs.recipes.running import start_command
from hf_mwp.usage_error import UsageError


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "two.yaml"
    path.write_text(
        "{stages: {one: {command: train}, two: {command: mix, distilled: '${one}'}}, targets: [two]}", encoding="utf-8"
    )
    return path


def test_stages_are_checked_told_of_and_run(path):
    ran, told, checked = [], [], []
    commands = {name: lambda argv, name=name: ran.append(name) for name in ("train", "mix")}
    options = {
        "commands": commands,
        "check": lambda stage: checked.append(stage.name),
        "on_plan": lambda recipe, stages: told.append((recipe.title, len(stages))),
        "on_stage": lambda stage, number, count: told.append((stage.name, number, count)),
    }
    assert run_recipe(path, dry_run=True, **options) == [] and not ran and checked == ["one", "two"]
    assert told == [(str(path), 2)]
    results = run_recipe(path, **options)
    assert ran == ["train", "mix"] and told[2:] == [("one", 1, 2), ("two", 2, 2)]
    assert results[0].stage.folder.parent.as_posix() == "runs/two"
    assert [result.skipped for result in run_recipe(path, targets=["one"], **options)] == [True]


def test_without_commands_each_stage_is_a_process(path, monkeypatch):
    started = []
    monkeypatch.setattr("hf_mwp.runs.recipes.running.start_command", lambda *words: started.append(words))
    run_recipe(path)
    assert [words[:2] for words in started] == [([sys.executable], "train"), ([sys.executable], "mix")]
    assert all(words[2][0] == "--config" for words in started)


def test_a_program_that_cannot_be_started_or_fails_is_named():
    with pytest.raises(UsageError, match="no-such-program"):
        start_command(["no-such-program"], "train", [])
    with pytest.raises(UsageError, match="status 3"):
        start_command([sys.executable, "-c", "raise SystemExit(3)"], "train", [])

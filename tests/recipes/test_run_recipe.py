import sys

import pytest

from hf_mwp.recipes import run_recipe
from hf_mwp.recipes.recipe import start_command
from hf_mwp.usage_error import UsageError


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "two.yaml"
    path.write_text(
        "{stages: {one: {command: train, encoder: someone/bert}, "
        "two: {command: mix, distilled: '${one}', pretrained: someone/bert}}, targets: [two]}",
        encoding="utf-8",
    )
    return path


def test_stages_are_told_of_and_run(path):
    ran, told = [], []
    commands = {name: lambda argv, name=name: ran.append(name) for name in ("train", "mix")}
    options = {
        "commands": commands,
        "on_plan": lambda recipe, stages: told.append((recipe.title, len(stages))),
        "on_stage": lambda stage, number, count: told.append((stage.name, number, count)),
    }
    assert run_recipe(path, dry_run=True, **options) == [] and not ran
    assert told == [(str(path), 2)]
    results = run_recipe(path, **options)
    assert ran == ["train", "mix"] and told[2:] == [("one", 1, 2), ("two", 2, 2)]
    assert results[0].stage.folder.parent.as_posix() == "runs/two"
    assert [result.skipped for result in run_recipe(path, targets=["one"], **options)] == [True]


def test_a_wrong_option_of_a_late_stage_is_found_before_the_first_one_runs(path):
    ran = []
    commands = {name: lambda argv, name=name: ran.append(name) for name in ("train", "mix")}
    with pytest.raises(UsageError, match="stage two: .*`pretrained_weight`.*7"):
        run_recipe(path, commands=commands, changes={"two.pretrained_weight": 7})
    with pytest.raises(UsageError, match="'one'.*'sove'"):
        run_recipe(path, commands=commands, changes={"one.command": "sove"})
    assert not ran


def test_without_commands_each_stage_is_a_process(path, monkeypatch):
    started = []
    monkeypatch.setattr("hf_mwp.recipes.recipe.start_command", lambda *words: started.append(words))
    run_recipe(path)
    assert [words[:2] for words in started] == [([sys.executable], "train"), ([sys.executable], "mix")]
    assert all(words[2][0] == "--config" for words in started)


def test_a_program_that_cannot_be_started_or_fails_is_named():
    with pytest.raises(UsageError, match="no-such-program"):
        start_command(["no-such-program"], "train", [])
    with pytest.raises(UsageError, match="status 3"):
        start_command([sys.executable, "-c", "raise SystemExit(3)"], "train", [])

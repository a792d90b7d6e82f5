import json
import sys
from functools import partial
from pathlib import Path

import pytest
import yaml

from hf_mwp.commands.recipes import run_recipe
from hf_mwp.commands.recipes.running import start_command
from hf_mwp.utils.usage_error import UsageError


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
    ran = []
    told = []
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
    with pytest.raises(UsageError, match="stage one: hub_token"):
        run_recipe(path, commands=commands, changes={"one.hub_token": "hf_secret"})
    with pytest.raises(UsageError, match="stage one: llm_api_key.*LLM_API_KEY"):
        run_recipe(path, commands=commands, changes={"one.llm_api_key": "secret"})
    with pytest.raises(UsageError, match="'one'.*'sove'"):
        run_recipe(path, commands=commands, changes={"one.command": "sove"})
    assert not ran


def test_the_data_of_an_export_are_checked_first(path):
    path.write_text("stages: {export: {command: export, model: someone/solver, dataset: mathh23k}}")
    with pytest.raises(UsageError, match="stage export: key 'dataset': .*mathh23k"):
        run_recipe(path, path.parent / "runs", dry_run=True)


def test_a_variable_that_must_be_set_is_named_before_the_first_stage_runs(path):
    recipe = yaml.safe_load(path.read_text("utf-8"))
    recipe["stages"]["label"] = {"command": "pseudo-label", "model": "${one}", "problems": ["${answers}", "x.jsonl"]}
    path.write_text(yaml.safe_dump(recipe | {"variables": {"answers": "???"}, "targets": ["label"]}), "utf-8")
    ran = []
    commands = {name: lambda argv, name=name: ran.append(name) for name in ("train", "pseudo-label")}
    with pytest.raises(UsageError, match="stage label: .*'problems'.*--answers.*`text` and `answer`"):
        run_recipe(path, commands=commands)
    assert not ran
    # Other stages do not need it.
    run_recipe(path, commands=commands, targets=["one"])
    assert ran == ["train"]


@pytest.mark.parametrize(("only_model", "expected"), [(False, "--resume"), (True, "--overwrite")])
def test_a_stage_resumes_if_its_checkpoint_has_an_optimizer(path, only_model, expected):
    given = []

    def work(argv):
        given.append(argv[2:])
        folder = Path(yaml.safe_load(Path(argv[1]).read_text("utf-8"))["output_dir"])
        (folder / "checkpoint-1").mkdir(exist_ok=True)
        (folder / "checkpoint-1" / "trainer_state.json").write_text("{}")
        if len(given) == 1:
            raise KeyboardInterrupt

    run = partial(run_recipe, path, commands={"train": work}, targets=["one"])
    with pytest.raises(KeyboardInterrupt):
        run(changes={"one.save_only_model": only_model})
    run(changes={"one.save_only_model": only_model})
    assert given == [[], [expected]]


def test_without_commands_each_stage_is_a_process(path, monkeypatch):
    started = []
    monkeypatch.setattr("hf_mwp.commands.recipes.running.start_command", lambda *words: started.append(words))
    run_recipe(path)
    assert [words[:2] for words in started] == [([sys.executable], "train"), ([sys.executable], "mix")]
    assert all(words[2][0] == "--config" for words in started)


def test_a_program_that_cannot_be_started_or_fails_is_named():
    with pytest.raises(UsageError, match="no-such-program"):
        start_command(["no-such-program"], "train", [])
    with pytest.raises(UsageError, match="status 3"):
        start_command([sys.executable, "-c", "raise SystemExit(3)"], "train", [])


@pytest.fixture
def search(path):
    """A recipe that trains one of three students after a teacher that they share; its file, and what ran."""
    path.write_text(
        "{variables: {student: base, seeds: {small: 1, base: 2, large: 3}}, targets: [mix], stages: {"
        "teacher: {command: train, encoder: someone/bert}, "
        "student: {command: distill, teacher: '${teacher}', seed: '${seeds.${student}}'}, "
        "mix: {command: mix, distilled: '${student}', pretrained: someone/bert}}, "
        "search: {variable: student, values: [small, base, large], stage: student}}",
        encoding="utf-8",
    )
    ran = []

    def work(name, argv):
        options = yaml.safe_load(Path(argv[1]).read_text("utf-8"))
        ran.append((name, options.get("seed")))
        share = {1: 0.6, 2: 0.7, 3: 0.8}.get(options.get("seed"))
        report = {"validation": {"reports": {"all problems": {"answer_accuracy": share}}}}
        (Path(options["output_dir"]) / "metrics.json").write_text(json.dumps(report), "utf-8")

    commands = {name: partial(work, name) for name in ("train", "distill", "mix")}
    return partial(run_recipe, path, commands=commands), ran


def test_the_smallest_model_with_the_accuracy_is_trained(search):
    run, ran = search
    plans = []
    results = run(min_accuracy=0.7, on_plan=lambda recipe, stages: plans.append(recipe.variables["student"]))
    # Small has 60 %; large, with 80 %, is not trained, and the teacher is trained once.
    assert ran == [("train", None), ("distill", 1), ("distill", 2), ("mix", None)]
    assert plans == ["small", "base"] and results[-1].stage.command == "mix"
    assert run(min_accuracy=0.65) and len(ran) == 4
    assert run(min_accuracy=0.7, dry_run=True) == [] and len(ran) == 4


def test_no_more_models_are_trained_than_allowed(search):
    run, ran = search
    with pytest.raises(UsageError, match=r"No model .*75\.0%.*: small 60\.0%, base 70\.0%\."):
        run(min_accuracy=0.75, max_trainings=2)
    assert [seed for name, seed in ran if name == "distill"] == [1, 2]
    with pytest.raises(UsageError, match="--max_trainings.*--min_accuracy"):
        run(max_trainings=2)


def test_the_stage_of_a_search_is_planned_and_checked(search):
    run, ran = search
    plans = []
    run(min_accuracy=0.5, targets=["teacher"], dry_run=True, on_plan=lambda _, stages: plans.append(stages))
    assert [[stage.name for stage in stages] for stages in plans] == 3 * [["teacher", "student"]]
    with pytest.raises(UsageError, match="stage student: .*num_train_epochs"):
        run(min_accuracy=0.5, targets=["teacher"], changes={"student.num_train_epochs": "many"})
    assert not ran


def test_a_search_needs_answers_of_validation_problems(search):
    run, ran = search
    with pytest.raises(UsageError, match="search: stage 'student' has no validation answer accuracy"):
        run(min_accuracy=0.5, changes={"seeds": {"small": 9, "base": 2, "large": 3}})
    with pytest.raises(UsageError, match=r"No model .*90\.0%.*: small 60\.0%\."):
        run(min_accuracy=0.9, max_trainings=1)


def test_values_of_a_search_may_be_lists(path):
    report = {"validation": {"reports": {"all problems": {"answer_accuracy": 0.25}}}}
    path.write_text(
        "{variables: {layers: [0]}, stages: {one: {command: distill, teacher: a/b, hidden_weights: '${layers}'}}, "
        "search: {variable: layers, values: [[0], [0, 1]], stage: one}}",
        encoding="utf-8",
    )

    def work(argv):
        folder = yaml.safe_load(Path(argv[1]).read_text("utf-8"))["output_dir"]
        (Path(folder) / "metrics.json").write_text(json.dumps(report), "utf-8")

    with pytest.raises(UsageError, match=r"\[0\] 25\.0%, \[0, 1\] 25\.0%"):
        run_recipe(path, min_accuracy=0.5, commands={"distill": work})


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("{variable: student}", "keys `variable`"),
        ("{variable: student, values: [], stage: one}", "at least one"),
        ("{variable: pupil, values: [1], stage: one}", "unknown variable 'pupil'"),
        ("{variable: student, values: [1], stage: three}", "unknown stage 'three'"),
    ],
)
def test_a_wrong_search_is_named(path, search, message):
    text = path.read_text("utf-8").replace("targets:", f"variables: {{student: 1}}, search: {search}, targets:")
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=message):
        run_recipe(path, dry_run=True)


def test_an_accuracy_needs_models_to_choose_from(path):
    with pytest.raises(UsageError, match="no `search`"):
        run_recipe(path, dry_run=True, min_accuracy=0.5)

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


@pytest.fixture
def started():
    """Names of the commands that were started."""
    return []


@pytest.fixture
def commands(started):
    """Commands that do nothing but record their names."""
    return {name: lambda argv, name=name: started.append(name) for name in ("train", "mix", "pseudo-label")}


def options_of(argv):
    """Options of a stage, from the arguments of its command."""
    return yaml.safe_load(Path(argv[1]).read_text("utf-8"))


def write_accuracy(options, accuracy):
    report = {"validation": {"reports": {"all problems": {"answer_accuracy": accuracy}}}}
    (Path(options["output_dir"]) / "metrics.json").write_text(json.dumps(report), "utf-8")


def test_stages_are_planned_announced_and_run(path, commands, started):
    plans = []
    stages = []
    options = {
        "commands": commands,
        "on_plan": lambda recipe, stages_to_run: plans.append((recipe.title, len(stages_to_run))),
        "on_stage": lambda stage, number, num_stages: stages.append((stage.name, number, num_stages)),
    }
    assert run_recipe(path, dry_run=True, **options) == []
    assert plans == [(str(path), 2)]
    assert not started
    results = run_recipe(path, **options)
    assert started == ["train", "mix"]
    assert stages == [("one", 1, 2), ("two", 2, 2)]
    assert results[0].stage.folder.parent.as_posix() == "runs/two"
    assert [result.skipped for result in run_recipe(path, targets=["one"], **options)] == [True]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"two.pretrained_weight": 7}, "stage two: .*`pretrained_weight`.*7"),
        ({"one.hub_token": "hf_secret"}, "stage one: hub_token"),
        ({"one.llm_api_key": "secret"}, "stage one: llm_api_key.*LLM_API_KEY"),
        ({"one.command": "sove"}, "'one'.*'sove'"),
    ],
)
def test_wrong_option_is_found_before_the_first_stage_runs(path, commands, started, changes, message):
    with pytest.raises(UsageError, match=message):
        run_recipe(path, commands=commands, changes=changes)
    assert not started


def test_data_of_an_export_are_checked_first(path):
    path.write_text("stages: {export: {command: export, model: someone/solver, dataset: mathh23k}}")
    with pytest.raises(UsageError, match="stage export: key 'dataset': .*mathh23k"):
        run_recipe(path, path.parent / "runs", dry_run=True)


def test_variable_that_must_be_set_is_named_before_the_first_stage_runs(path, commands, started):
    recipe = yaml.safe_load(path.read_text("utf-8"))
    recipe["stages"]["label"] = {"command": "pseudo-label", "model": "${one}", "problems": ["${answers}", "x.jsonl"]}
    recipe |= {"variables": {"answers": "???"}, "targets": ["label"]}
    path.write_text(yaml.safe_dump(recipe), "utf-8")
    with pytest.raises(UsageError, match="stage label: .*'problems'.*--answers.*`text` and `answer`"):
        run_recipe(path, commands=commands)
    assert not started
    # Other stages do not need it.
    run_recipe(path, commands=commands, targets=["one"])
    assert started == ["train"]


@pytest.mark.parametrize(("only_model", "flag"), [(False, "--resume"), (True, "--overwrite")])
def test_stage_resumes_if_its_checkpoint_has_an_optimizer(path, only_model, flag):
    flags = []

    def train(argv):
        flags.append(argv[2:])
        checkpoint = Path(options_of(argv)["output_dir"]) / "checkpoint-1"
        checkpoint.mkdir(exist_ok=True)
        (checkpoint / "trainer_state.json").write_text("{}")
        if len(flags) == 1:
            raise KeyboardInterrupt

    changes = {"one.save_only_model": only_model}
    run = partial(run_recipe, path, commands={"train": train}, targets=["one"], changes=changes)
    with pytest.raises(KeyboardInterrupt):
        run()
    run()
    assert flags == [[], [flag]]


@pytest.mark.parametrize(
    ("launch", "launcher"), [(None, [sys.executable]), ("torchrun --standalone", ["torchrun", "--standalone"])]
)
def test_without_commands_each_stage_is_a_process(path, monkeypatch, launch, launcher):
    processes = []
    monkeypatch.setattr("hf_mwp.commands.recipes.running.start_command", lambda *words: processes.append(words))
    results = run_recipe(path, launch=launch)
    # Only stages that train are started by the launcher.
    starts = [(launcher, "train"), ([sys.executable], "mix")]
    expected = []
    for (start, command), result in zip(starts, results, strict=True):
        expected.append((start, command, ["--config", str(result.stage.folder / "stage.yaml")]))
    assert processes == expected


def test_program_that_cannot_be_started_or_fails_is_named():
    with pytest.raises(UsageError, match="no-such-program"):
        start_command(["no-such-program"], "train", [])
    with pytest.raises(UsageError, match="status 3"):
        start_command([sys.executable, "-c", "raise SystemExit(3)"], "train", [])


@pytest.fixture
def run_search(path, started):
    """Function that runs a recipe which trains one of three students after a teacher that they share."""
    path.write_text(
        "{variables: {student: base, seeds: {small: 1, base: 2, large: 3}}, targets: [mix], stages: {"
        "teacher: {command: train, encoder: someone/bert}, "
        "student: {command: distill, teacher: '${teacher}', seed: '${seeds.${student}}'}, "
        "mix: {command: mix, distilled: '${student}', pretrained: someone/bert}}, "
        "search: {variable: student, values: [small, base, large], stage: student}}",
        encoding="utf-8",
    )
    accuracies = {1: 0.6, 2: 0.7, 3: 0.8}

    def work(name, argv):
        options = options_of(argv)
        seed = options.get("seed")
        started.append((name, seed))
        write_accuracy(options, accuracies.get(seed))

    commands = {name: partial(work, name) for name in ("train", "distill", "mix")}
    return partial(run_recipe, path, commands=commands)


def test_smallest_model_with_the_accuracy_is_trained(run_search, started):
    students = []
    results = run_search(min_accuracy=0.7, on_plan=lambda recipe, stages: students.append(recipe.variables["student"]))
    # Small has 60 %; large, with 80 %, is not trained, and the teacher is trained once.
    assert started == [("train", None), ("distill", 1), ("distill", 2), ("mix", None)]
    assert students == ["small", "base"]
    assert results[-1].stage.command == "mix"
    assert run_search(min_accuracy=0.65)
    assert run_search(min_accuracy=0.7, dry_run=True) == []
    assert len(started) == 4


@pytest.mark.slow
def test_no_more_models_are_trained_than_allowed(run_search, started):
    with pytest.raises(UsageError, match=r"No model .*75\.0%.*: small 60\.0%, base 70\.0%\."):
        run_search(min_accuracy=0.75, max_trainings=2)
    assert [seed for name, seed in started if name == "distill"] == [1, 2]
    with pytest.raises(UsageError, match="--max_trainings.*--min_accuracy"):
        run_search(max_trainings=2)


@pytest.mark.slow
def test_stage_of_a_search_is_planned_and_checked(run_search, started):
    plans = []

    def add_plan(recipe, stages):
        plans.append([stage.name for stage in stages])

    run_search(min_accuracy=0.5, targets=["teacher"], dry_run=True, on_plan=add_plan)
    assert plans == 3 * [["teacher", "student"]]
    with pytest.raises(UsageError, match="stage student: .*num_train_epochs"):
        run_search(min_accuracy=0.5, targets=["teacher"], changes={"student.num_train_epochs": "many"})
    assert not started


def test_search_needs_answers_of_validation_problems(run_search):
    with pytest.raises(UsageError, match="search: stage 'student' has no validation answer accuracy"):
        run_search(min_accuracy=0.5, changes={"seeds": {"small": 9, "base": 2, "large": 3}})


def test_values_of_a_search_may_be_lists(path):
    path.write_text(
        "{variables: {layers: [0]}, stages: {one: {command: distill, teacher: a/b, hidden_weights: '${layers}'}}, "
        "search: {variable: layers, values: [[0], [0, 1]], stage: one}}",
        encoding="utf-8",
    )
    commands = {"distill": lambda argv: write_accuracy(options_of(argv), 0.25)}
    with pytest.raises(UsageError, match=r"\[0\] 25\.0%, \[0, 1\] 25\.0%"):
        run_recipe(path, min_accuracy=0.5, commands=commands)


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ("{variable: student}", "keys `variable`"),
        ("{variable: student, values: [], stage: one}", "at least one"),
        ("{variable: pupil, values: [1], stage: one}", "unknown variable 'pupil'"),
        ("{variable: student, values: [1], stage: three}", "unknown stage 'three'"),
        ("null", "no `search`"),
    ],
)
def test_wrong_search_is_named(path, search, message):
    text = path.read_text("utf-8").replace("targets:", f"variables: {{student: 1}}, search: {search}, targets:")
    path.write_text(text, "utf-8")
    with pytest.raises(UsageError, match=message):
        run_recipe(path, dry_run=True, min_accuracy=0.5)

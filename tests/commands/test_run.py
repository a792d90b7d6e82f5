import itertools
import os
import re
import shutil
import signal
import sys
from pathlib import Path

import pytest
import yaml
from huggingface_hub import ModelCard
from transformers import Trainer, pipeline

from hf_mwp import load_mwp_dataset
from hf_mwp.commands.main import main
from hf_mwp.commands.recipes import Recipe
from hf_mwp.commands.run import headline, read_changes
from tests.commands.folders import read_json, write_rows
from tests.compress.trainers.processes import launch
from tests.slow_parameters import slow_after


COMPACT = Path(__file__).parents[2] / "examples" / "compact_math23k.yaml"
SELF_TRAINING = COMPACT.with_name("compact_math23k_self_training.yaml")
TRAINING = {
    "dataset": "${dataset}",
    "use_cpu": True,
    "num_train_epochs": "${epochs}",
    "learning_rate": 1e-3,
    "per_device_train_batch_size": 8,
    "save_strategy": "epoch",
    "eval_strategy": "no",
    "test": False,
}


@pytest.fixture
def recipe_file(problems, encoder, tmp_path):
    """A recipe of a teacher, a student cut from it, evaluations and a card."""
    content = {
        "recipe": "Tiny",
        "budget": "normal",
        "variables": {"dataset": str(problems), "epochs": 1},
        "stages": {
            "teacher": {"command": "train", "encoder": str(encoder), **TRAINING},
            "student": {"command": "distill", "teacher": "${teacher}", "student_layers": "1", **TRAINING},
            "evaluate": {"command": "evaluate", "model": "${student}", "dataset": "${dataset}", "num_beams": 2},
            "evaluate_teacher": {"command": "evaluate", "model": "${teacher}", "dataset": "${dataset}"},
            "card": {
                "command": "card",
                "model": "${student}",
                "stages": ["${teacher}", "${student}"],
                "evaluations": ["${evaluate}"],
                "teacher_evaluations": ["${evaluate_teacher}"],
                "license": "mit",
            },
        },
        "budgets": {"normal": {}, "long": {"variables": {"epochs": 2}}},
        "targets": ["card"],
    }
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def stages(recipe_file, folder, **kwargs):
    return Recipe.from_file(recipe_file, folder, **kwargs).stages


def test_recipe_runs_from_teacher_to_card(recipe_file, tmp_path, capsys):
    folder = tmp_path / "runs"
    argv = ["run", str(recipe_file), "--output_dir", str(folder)]
    assert main([*argv, "--dry_run"]) == 0
    assert "to do" in capsys.readouterr().out
    assert not folder.exists()
    assert main(argv) == 0
    output = capsys.readouterr().out
    assert re.search(r"\b1 of 5: teacher .*hf-mwp train", output)
    assert "2 beams" in output
    card = stages(recipe_file, folder)["card"].folder
    text = ModelCard.load(card / "README.md").text
    assert "| teacher |" in text
    assert str(tmp_path) not in text.replace(str(card), "")
    commands = {stage["name"]: stage["command"] for stage in read_json(card / "record.json")["stages"]}
    assert commands == {"teacher": "hf-mwp train", "student": "hf-mwp distill"}
    solve = pipeline("math-word-problem", model=str(card), device="cpu")
    assert solve("小明有4个苹果，又买了2个")[0]["numbers"]
    assert main(argv) == 0
    assert capsys.readouterr().out.count("skipped") == 5


def test_options_are_passed_on(monkeypatch, output_of):
    calls = []

    def run_recipe(*args, **options):
        calls.append((args, options))
        return []

    monkeypatch.setattr("hf_mwp.commands.run.run_recipe", run_recipe)
    argv = ["--output_dir=runs", "--targets", "a", "b", "--budget=quick", "--launch=torchrun", "--base=b.yaml"]
    argv += ["--min_accuracy=0.5", "--max_trainings=2", "--dry_run", "--a-stage.lr", "2", "--seed=3"]
    output_of("run", "r.yaml", *argv)
    ((args, options),) = calls
    assert args == ("r.yaml",)
    for name in ("commands", "on_plan", "on_stage"):
        assert options.pop(name)
    expected = {"output_dir": "runs", "targets": ["a", "b"], "budget": "quick", "launch": "torchrun", "base": "b.yaml"}
    expected |= {"min_accuracy": 0.5, "max_trainings": 2, "dry_run": True, "changes": {"a_stage.lr": 2, "seed": 3}}
    assert options == expected


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("[a, b]", ["a", "b"]),
        ("{num_hidden_layers: 6}", {"num_hidden_layers": 6}),
        ("1e-4", 1e-4),
        ("null", None),
        (" ", None),
        ("'5'", "5"),
        ('"a # b"', "a # b"),
        ("Limits: none: really", "Limits: none: really"),
        ("@home", "@home"),
        ("2026-13-45", "2026-13-45"),
        ("## Data\n\nOf *two* kinds.\n\nNo more.", "## Data\n\nOf *two* kinds.\n\nNo more."),
        ("number #3 #4", "number #3 #4"),
    ],
)
def test_values_on_the_command_line_are_yaml_or_text(text, value):
    assert read_changes(["--notes", text]) == read_changes([f"--notes={text}"]) == {"notes": value}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--temperature"], "--temperature"),
        (["--budget", "huge"], "'huge'"),
        (["--evaluate.num_beems", "2"], "stage evaluate: .*'num_beems'.*'num_beams'"),
        (["--student.temperature", "hot"], "stage student: .*'temperature'"),
        (["--student.output_dir", "mine"], "stage student: .*'output_dir': .*--output_dir"),
        (["--teacher.encoder", "/no/such"], "stage teacher: .*'encoder': .*/no/such"),
        (["--student.teacher", "['${{teacher}}', ./none]"], r"stage student: .*'teacher': .*none"),
        (["--evaluate.model", "{encoder}"], "stage evaluate: .*'model': {encoder} .*'bert'"),
        (["--teacher.tokenizer", "/no/such"], "stage teacher: .*'tokenizer': .*/no/such"),
        (["--dataset", "math32k"], "stage teacher: .*'dataset': math32k: .*math23k"),
        (["--student.extra_train", "[mawps:al]"], "'extra_train': mawps:al: .*train, validation, test, all"),
        (["--student.extra_exclude", "[no.jsonl]"], r"stage student: .*'extra_exclude': no\.jsonl: "),
    ],
)
def test_wrong_option_is_named_before_the_first_stage_runs(recipe_file, encoder, tmp_path, error_of, changes, message):
    changes = [change.format(encoder=encoder) for change in changes]
    error = error_of("run", recipe_file, "--output_dir", tmp_path / "runs", *changes)
    assert re.search(message.format(encoder=encoder), error)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("changes", "message"),
    slow_after(
        2,
        [
            (["--corpus", "no.txt"], r"stage pretrain: .*'corpus': no\.txt: "),
            (["--tagger", "bogus"], "stage pretrain: .*'tagger': .*'bogus'.*'jieba'"),
            (["--pretrain.exclude", "[ape210k:all]"], "stage pretrain: .*'exclude': .*ape210k"),
            (["--corpus", "README.md"], r"stage pretrain: .*'corpus': README\.md: .*\.txt"),
            (["--tagger", "ltp:/no/such"], "stage pretrain: .*'tagger': .*/no/such"),
        ],
    ),
)
def test_missing_texts_and_taggers_are_named_before_the_first_stage_runs(tmp_path, error_of, changes, message):
    argv = ["run", COMPACT, "--budget", "quick", "--output_dir", tmp_path, "--dry_run"]
    assert re.search(message, error_of(*argv, *changes))


def test_missing_recipe_and_file_of_answers_are_named(tmp_path, error_of):
    assert "run: " in error_of("run")
    assert "none.yaml" in error_of("run", tmp_path / "none.yaml")
    argv = ["run", SELF_TRAINING, "--budget", "quick", "--output_dir", tmp_path, "--dry_run"]
    assert re.search(r"stage label: .*'problems': no\.jsonl: ", error_of(*argv, "--answers", "no.jsonl"))


@pytest.mark.slow
def test_names_on_the_hub_are_not_looked_for(recipe_file, tmp_path, output_of):
    argv = ["run", recipe_file, "--output_dir", tmp_path / "runs", "--dry_run"]
    output_of(*argv, "--teacher.encoder", "someone/bert", "--student.layer_mapping", "1:4,2:8")
    output_of(*argv, "--student.student_encoder", "someone/student", "--student.student_layers", "null")
    output_of("run", COMPACT, "--budget=quick", "--tagger=ltp:LTP/legacy", "--output_dir", tmp_path, "--dry_run")


def killed_at_a_step(run):
    """Runs a command that kills itself before a training step, counted through all its trainings."""
    step = Trainer.training_step
    steps = itertools.count(1)

    def training_step(self, *args, **kwargs):
        if next(steps) == run["step"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *args, **kwargs)

    Trainer.training_step = training_step
    main(run["argv"])


@pytest.mark.slow
def test_killed_recipe_resumes_and_gives_the_same_student(recipe_file, tmp_path):
    killed = tmp_path / "killed"
    argv = ["run", str(recipe_file), "--budget", "long", "--targets", "student", "--output_dir"]
    step = 10 + 7  # the second epoch of the student
    run = launch(killed_at_a_step, [{"argv": [*argv, str(killed)], "step": step, "output_dir": str(killed)}])
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    student = stages(recipe_file, killed, budget="long")["student"].folder
    assert [path.name for path in student.glob("checkpoint-*")] == ["checkpoint-5"]
    # The other run has the same teacher, and trains its student without interruption.
    whole = shutil.copytree(killed, tmp_path / "whole", ignore=shutil.ignore_patterns("student-*"))
    weights = []
    for folder in (killed, whole):
        assert main([*argv, str(folder)]) == 0
        student = stages(recipe_file, folder, budget="long")["student"].folder
        weights.append((student / "model.safetensors").read_bytes())
    assert weights[0] == weights[1]


def test_processes_of_a_launcher_do_not_run_recipes(recipe_file, error_of, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert "--launch 'torchrun --nproc_per_node 2'" in error_of("run", recipe_file)


@pytest.mark.slow
def test_two_processes_train_a_stage(recipe_file, tmp_path):
    launcher = f"{sys.executable} -m torch.distributed.run --standalone --nproc_per_node 2"
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path), "--launch", launcher]
    assert main(argv) == 0
    (student,) = tmp_path.glob("student-*")
    assert read_json(student / "run.json")["machine"]["world_size"] == 2
    assert (next(tmp_path.glob("card-*")) / "README.md").is_file()


@pytest.mark.slow
def test_example_with_self_training_trains_on_its_labels(tmp_path):
    changes = {"use_cpu": True, "answers": "answers.jsonl"}
    recipe = Recipe.from_file(SELF_TRAINING, tmp_path, budget="quick", changes=changes)
    for name in ("retrain", "distill", "finetune"):
        assert recipe.stages[name].options["extra_train"] == [f"{recipe.stages['label'].folder}/labelled.jsonl"]
    assert recipe.stages["evaluate_teacher"].options["model"] == str(recipe.stages["retrain"].folder)
    # The first teacher is that of the recipe without labels, and is not trained again.
    base = Recipe.from_file(COMPACT, tmp_path, budget="quick", changes={"use_cpu": True})
    assert base.stages["teacher"].fingerprint == recipe.stages["teacher"].fingerprint


@pytest.mark.parametrize("name", slow_after(1, ["self_training", "reversed", "gemma"]))
def test_example_without_its_answers_names_the_option(name, tmp_path, error_of):
    path = COMPACT.with_name(f"compact_math23k_{name}.yaml")
    assert "--answers" in error_of("run", path, "--use_cpu", "true", "--output_dir", tmp_path, "--dry_run")


@pytest.mark.slow
def test_self_training_runs_from_its_first_teacher_to_the_student(tmp_path, output_of):
    rows = load_mwp_dataset("math23k")["train"].select(range(40))
    answers = [{"text": row["text"], "answer": row["answer"]} for row in rows]
    path = write_rows(tmp_path / "answers.jsonl", answers)
    argv = ["run", SELF_TRAINING, "--budget", "quick", "--answers", path, "--use_cpu", "true"]
    output = output_of(*argv, "--output_dir", tmp_path, "--targets", "evaluate_greedy")
    (label,) = tmp_path.glob("label-*")
    fates = read_json(label / "metrics.json")["fates"]
    assert sum(fates.values()) == 40
    assert f"{fates['labelled']} labelled" in output
    assert "test" in output


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ({"reports": {"all problems": {"matthews": 0.321, "accuracy": 0.7}}}, "test 32.1 % (matthews)"),
        (
            {"num_beams": 4, "reports": {"all problems": {"bleu": 34.557, "chrf": 56.9}}},
            "test 34.557 (bleu, 4 beams)",
        ),
        (
            {"num_beams": 4, "reports": {"all problems": {"answer_accuracy": 0.25, "num_problems": 4}}},
            "test 25.0 % (4 beams)",
        ),
    ],
)
def test_headline_has_the_first_metric(section, expected):
    assert headline({"test": section}) == expected

import itertools
import json
import os
import re
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
from tests.compress.trainers.processes import launch


COMPACT = Path(__file__).parents[2] / "examples" / "compact_math23k.yaml"
ENGLISH = [COMPACT.with_name(f"compact_{name}.yaml") for name in ("asdiv", "english", "english_asdiv")]
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
        "budgets": {"normal": {}, "long": {"variables": {"epochs": 3}}},
        "targets": ["card"],
    }
    path = tmp_path / "tiny.yaml"
    path.write_text(yaml.safe_dump(content))
    return path


def stages(recipe_file, folder, **kwargs):
    return Recipe.from_file(recipe_file, folder, **kwargs).stages


def test_a_recipe_from_teacher_to_card(recipe_file, tmp_path, capsys):
    folder = tmp_path / "runs"
    argv = ["run", str(recipe_file), "--output_dir", str(folder)]
    assert main([*argv, "--dry_run"]) == 0
    assert "to do" in capsys.readouterr().out and not folder.exists()
    assert main(argv) == 0
    shown = capsys.readouterr().out
    assert re.search(r"\b1 of 5: teacher .*hf-mwp train", shown) and "2 beams" in shown

    card = stages(recipe_file, folder)["card"].folder
    text = ModelCard.load(card / "README.md").text
    record = json.loads((card / "record.json").read_text(encoding="utf-8"))
    assert "| teacher |" in text and ("student", "hf-mwp distill") in [
        (x["name"], x["command"]) for x in record["stages"]
    ]
    assert pipeline("math-word-problem", model=str(card), device="cpu")("小明有4个苹果，又买了2个")[0]["numbers"]
    assert str(tmp_path) not in text.replace(str(card), "")

    assert main(argv) == 0
    assert capsys.readouterr().out.count("skipped") == 5


def test_a_recipe_is_run_by_its_name(recipe_file, tmp_path, capsys):
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path / "runs"), "--epochs", "2", "--targets", "teacher"]
    assert main([*argv, "--dry_run"]) == 0
    name = stages(recipe_file, tmp_path / "runs", changes={"epochs": 2})["teacher"].folder.name
    assert name in capsys.readouterr().out
    assert not (tmp_path / "runs").exists()
    assert main(["run"]) == 1
    assert "run: " in capsys.readouterr().err
    assert main(["run", str(tmp_path / "none.yaml")]) == 1
    assert "none.yaml" in capsys.readouterr().err


def test_changes_on_the_command_line_run_only_what_they_touch(recipe_file, tmp_path, capsys):
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path / "runs"), "--targets", "student"]
    assert main(argv) == 0
    assert main([*argv, "--student.temperature", "2"]) == 0
    shown = capsys.readouterr().out
    assert len(re.findall("teacher .*skipped", shown)) == 1 and shown.count("student (hf-mwp distill)") == 2
    changed = stages(recipe_file, tmp_path / "runs", changes={"student.temperature": 2})["student"]
    record = yaml.safe_load((changed.folder / "run_config.yaml").read_text())
    assert record["temperature"] == 2


def test_a_wrong_option_of_a_late_stage_is_named_before_the_first_one_runs(recipe_file, tmp_path, capsys):
    folder = tmp_path / "runs"
    argv = ["run", str(recipe_file), "--output_dir", str(folder)]
    assert main([*argv, "--evaluate.num_beems", "2"]) == 1
    assert re.search("stage evaluate: .*'num_beems'.*'num_beams'", capsys.readouterr().err)
    assert main([*argv, "--student.temperature", "hot"]) == 1
    assert re.search("stage student: .*'temperature'", capsys.readouterr().err)
    assert main([*argv, "--budget", "huge"]) == 1
    assert "'huge'" in capsys.readouterr().err
    assert main([*argv, "--student.output_dir", str(tmp_path / "mine")]) == 1
    assert re.search("stage student: .*'output_dir': .*--output_dir", capsys.readouterr().err)
    assert main([*argv, "--temperature"]) == 1
    assert "--temperature" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("true", True),
        ("[a, b]", ["a", "b"]),
        ("{num_hidden_layers: 6}", {"num_hidden_layers": 6}),
        ("1e-4", 1e-4),
        ("1:4,2:8", "1:4,2:8"),
        ("null", None),
        ("~", None),
        ("", None),
        (" ", None),
        ("Null", None),
        ("'5'", "5"),
        ('"a # b"', "a # b"),
        ("Limits: none: really", "Limits: none: really"),
        ("@home", "@home"),
        ("[a", "[a"),
        ("2026-13-45", "2026-13-45"),
        ("## Data", "## Data"),
        ("## Data\n\nOf *two* kinds.\n\nNo more.", "## Data\n\nOf *two* kinds.\n\nNo more."),
        ("number #3 #4", "number #3 #4"),
    ],
)
def test_values_on_the_command_line_are_yaml_or_the_text_they_are(text, value):
    assert read_changes(["--notes", text]) == read_changes([f"--notes={text}"])
    assert read_changes(["--notes", text, "--a-stage.option", "1"]) == {"notes": value, "a_stage.option": 1}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--student.layer_mapping", "foo;bar"], "stage student: .*'foo;bar'"),
        (["--teacher.encoder", "/no/such"], "stage teacher: .*'encoder': .*/no/such"),
        (["--student.teacher", "./none"], r"stage student: .*'teacher': .*none"),
        (
            ["--student.teacher", "['${{teacher}}', ./none]"],
            r"stage student: .*'teacher': .*none",
        ),
        (["--evaluate.model", "{encoder}"], "stage evaluate: .*'model': {encoder} .*'bert'"),
        (
            ["--teacher.encoder_layers", "abc"],
            "stage teacher: .*`encoder_layers`.*'abc'",
        ),
        (["--student.student_layers", "1;2"], "stage student: .*`student_layers`.*'1;2'"),
        (["--teacher.tokenizer", "/no/such"], "stage teacher: .*'tokenizer': .*/no/such"),
    ],
)
def test_models_are_checked_before_the_first_stage_runs(recipe_file, encoder, tmp_path, capsys, changes, message):
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path / "runs"), "--dry_run"]
    assert main([*argv, *(change.format(encoder=encoder) for change in changes)]) == 1
    assert re.search(message.format(encoder=encoder), capsys.readouterr().err)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--dataset", "math32k"], "stage teacher: .*'dataset': math32k: .*math23k"),
        (["--teacher.data_dir", "/no", "--dataset", "cm17k"], "'dataset': /no: .*`data_dir`"),
        (
            ["--student.extra_train", "[mawps:al]"],
            "student: .*'extra_train': mawps:al: .*train, validation, test, all",
        ),
        (["--student.extra_exclude", "[no.jsonl]"], r"stage student: .*'extra_exclude': no\.jsonl: "),
        (["--evaluate.dataset", "no.csv"], r"stage evaluate: .*'dataset': no\.csv: "),
    ],
)
def test_data_is_looked_for_before_the_first_stage_runs(recipe_file, tmp_path, capsys, changes, message):
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path / "runs"), "--dry_run"]
    assert main([*argv, *changes]) == 1
    assert re.search(message, capsys.readouterr().err)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--corpus", "no.txt"], r"stage pretrain: .*'corpus': no\.txt: "),
        (["--pretrain.exclude", "[ape210k:all]"], "stage pretrain: .*'exclude': .*ape210k"),
        (["--corpus", "examples"], "stage pretrain: .*'corpus': examples: "),
        (["--corpus", "README.md"], r"stage pretrain: .*'corpus': README\.md: .*\.txt"),
        (["--tagger", "bogus"], "stage pretrain: .*'tagger': .*'bogus'.*'jieba'"),
        (["--tagger", "ltp:/no/such"], "stage pretrain: .*'tagger': .*/no/such"),
        (["--tagger", '"ltp:"'], "stage pretrain: .*'tagger': .*'ltp:'"),
    ],
)
def test_texts_and_taggers_are_looked_for_before_the_first_stage_runs(tmp_path, capsys, changes, message):
    argv = ["run", str(COMPACT), "--budget", "quick", "--output_dir", str(tmp_path), "--dry_run"]
    assert main([*argv, *changes]) == 1
    assert re.search(message, capsys.readouterr().err)


def test_taggers_of_the_hub_may_be_named_and_answers_have_to_be_there(tmp_path, capsys):
    argv = ["--budget", "quick", "--output_dir", str(tmp_path), "--dry_run"]
    assert main(["run", str(COMPACT), *argv, "--tagger", "ltp:LTP/legacy"]) == 0
    assert main(["run", str(SELF_TRAINING), *argv, "--answers", "no.jsonl"]) == 1
    assert re.search(r"stage label: .*'problems': no\.jsonl: ", capsys.readouterr().err)


def test_models_of_the_hub_may_be_named(recipe_file, tmp_path):
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path / "runs"), "--dry_run"]
    assert main([*argv, "--teacher.encoder", "someone/bert", "--student.layer_mapping", "1:4,2:8"]) == 0
    assert main([*argv, "--student.student_encoder", "someone/student", "--student.student_layers", "null"]) == 0


def killed_at_a_step(run):
    """Runs a command that kills itself before a training step, counted through all its trainings."""
    step = Trainer.training_step
    count = itertools.count(1)

    def training_step(self, *args, **kwargs):
        if next(count) == run["step"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return step(self, *args, **kwargs)

    Trainer.training_step = training_step
    main(run["argv"])


def test_a_killed_recipe_goes_on_and_gives_the_same_student(recipe_file, tmp_path):
    killed = tmp_path / "killed"
    whole = tmp_path / "whole"
    argv = ["run", str(recipe_file), "--budget", "long", "--targets", "student", "--output_dir"]
    step = 15 + 7  # the second epoch of the student
    run = launch(killed_at_a_step, [{"argv": [*argv, str(killed)], "step": step, "output_dir": str(killed)}])
    assert run.returncode == -signal.SIGKILL, run.stderr[-3000:]
    student = stages(recipe_file, killed, budget="long")["student"].folder
    assert [path.name for path in student.glob("checkpoint-*")] == ["checkpoint-5"]
    assert main([*argv, str(killed)]) == 0
    assert main([*argv, str(whole)]) == 0
    weights = [
        (stages(recipe_file, folder, budget="long")["student"].folder / "model.safetensors").read_bytes()
        for folder in (killed, whole)
    ]
    assert weights[0] == weights[1]


LAUNCHER = """
import json, pathlib, shutil, sys

folder, (*_, config) = sys.argv[1], sys.argv[2:]
made = pathlib.Path(config).parent
shutil.copytree(folder, made, dirs_exist_ok=True)
(made / "run.json").write_text(json.dumps(sys.argv[2:]))
"""


def test_training_stages_are_launched(recipe_file, solver_folder, tmp_path, capfd, monkeypatch):
    argv = [
        "run",
        str(recipe_file),
        "--output_dir",
        str(tmp_path / "runs"),
        "--targets",
        "evaluate_teacher",
    ]
    assert main([*argv, "--launch", "no-such-launcher"]) == 1
    assert "no-such-launcher" in capfd.readouterr().err
    assert main([*argv, "--launch", f"{sys.executable} -c 'raise SystemExit(3)'"]) == 1
    assert "status 3" in capfd.readouterr().err
    # A launcher that leaves a finished solver; `test_two_processes_train_a_stage` takes a real one.
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    launcher = f"{sys.executable} {tmp_path / 'launcher.py'} {solver_folder}"
    assert main([*argv, "--launch", launcher]) == 0
    launched = stages(recipe_file, tmp_path / "runs", launch=launcher)["teacher"]
    words = json.loads((launched.folder / "run.json").read_text())
    assert words == ["-m", "hf_mwp", "train", "--config", str(launched.folder / "stage.yaml")]
    assert not stages(recipe_file, tmp_path / "runs")["teacher"].folder.exists()
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(argv) == 1
    assert "--launch 'torchrun --nproc_per_node 2'" in capfd.readouterr().err


@pytest.mark.slow
def test_two_processes_train_a_stage(recipe_file, tmp_path):
    launcher = f"{sys.executable} -m torch.distributed.run --standalone --nproc_per_node 2"
    argv = ["run", str(recipe_file), "--output_dir", str(tmp_path), "--launch", launcher]
    assert main(argv) == 0
    (student,) = tmp_path.glob("student-*")
    assert json.loads((student / "run.json").read_text())["machine"]["world_size"] == 2
    assert (next(tmp_path.glob("card-*")) / "README.md").is_file()


@pytest.mark.parametrize("budget", ["quick", "cpu", "gpu", "paper"])
def test_the_stages_of_the_example_at_each_budget(budget, tmp_path):
    recipe = Recipe.from_file(COMPACT, tmp_path, budget=budget, changes={"use_cpu": True})
    names = [stage.name for stage in recipe.wanted()]
    assert names.index("pretrain") < names.index("distill") < names.index("mix") < names.index("finetune")
    assert {"card", "card_encoder"} <= set(names) and "adapt" not in names
    adapted = Recipe.from_file(COMPACT, tmp_path, budget=budget, changes={"teacher.encoder": "${adapt}"})
    assert "adapt" in [stage.name for stage in adapted.wanted()]


@pytest.mark.parametrize("budget", ["quick", "cpu", "gpu", "paper"])
def test_the_example_with_self_training_trains_on_its_labels(budget, tmp_path):
    changes = {"use_cpu": True, "answers": "answers.jsonl"}
    recipe = Recipe.from_file(SELF_TRAINING, tmp_path, budget=budget, changes=changes)
    names = [stage.name for stage in recipe.wanted()]
    assert names.index("teacher") < names.index("label") < names.index("retrain") < names.index("distill")
    for name in ("retrain", "distill", "finetune"):
        assert recipe.stages[name].options["extra_train"] == [f"{recipe.stages['label'].folder}/labelled.jsonl"]
    assert recipe.stages["evaluate_teacher"].options["model"] == str(recipe.stages["retrain"].folder)
    assert "labelled" in recipe.stages["card"].options["notes"]
    # The first teacher is that of the plain recipe, and is not trained again.
    plain = Recipe.from_file(COMPACT, tmp_path, budget=budget, changes={"use_cpu": True})
    assert plain.stages["teacher"].fingerprint == recipe.stages["teacher"].fingerprint


@pytest.mark.parametrize("name", ["self_training", "reversed", "gemma"])
def test_an_example_without_its_answers_says_what_to_pass(name, tmp_path, capsys):
    path = COMPACT.with_name(f"compact_math23k_{name}.yaml")
    argv = ["run", str(path), "--use_cpu", "true", "--output_dir", str(tmp_path), "--dry_run"]
    assert main(argv) == 1
    assert "--answers" in capsys.readouterr().err


@pytest.mark.slow
def test_self_training_runs_from_its_first_teacher_to_the_student(tmp_path, capsys):
    rows = load_mwp_dataset("math23k")["train"].select(range(40))
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps({"text": r["text"], "answer": r["answer"]}) + "\n" for r in rows), "utf-8")
    argv = ["run", str(SELF_TRAINING), "--budget", "quick", "--answers", str(answers)]
    assert main([*argv, "--use_cpu", "true", "--output_dir", str(tmp_path), "--targets", "evaluate_greedy"]) == 0
    (fates,) = (json.loads(path.read_text("utf-8"))["fates"] for path in tmp_path.glob("label-*/metrics.json"))
    assert sum(fates.values()) == 40
    shown = capsys.readouterr().out
    assert f"{fates['labelled']} labelled" in shown and "test" in shown


@pytest.mark.parametrize("file", ENGLISH, ids=lambda file: file.stem)
@pytest.mark.parametrize("budget", ["quick", "cpu"])
def test_the_english_examples_end_in_a_card(file, budget, tmp_path):
    recipe = Recipe.from_file(file, tmp_path, budget=budget, changes={"use_cpu": True})
    assert {"teacher", "distill", "evaluate", "card"} <= {stage.name for stage in recipe.wanted()}


def test_the_english_example_has_a_student_without_a_teacher(tmp_path):
    recipe = Recipe.from_file(ENGLISH[0], tmp_path, budget="gpu", changes={"use_cpu": True})
    assert "alone" in {stage.name for stage in recipe.wanted(["evaluate_alone"])}


def test_card_needs_evaluations_and_runs(solver_folder, tmp_path, capsys):
    argv = ["card", "--model", str(solver_folder), "--output_dir", str(tmp_path / "card")]
    (tmp_path / "metrics.json").write_text(json.dumps({"train": {}}))
    assert main([*argv, "--evaluations", str(tmp_path)]) == 1
    assert re.search(f"{tmp_path} .*evaluation", capsys.readouterr().err)
    assert main([*argv, "--stages", str(tmp_path)]) == 1
    assert re.search(f"{tmp_path}.*run", capsys.readouterr().err)
    assert main([*argv, "--part", "encoder"]) == 0
    assert (tmp_path / "card" / "modeling_mwp_student.py").is_file()


def test_the_headline_of_a_classifier_is_its_first_metric():
    report = {"matthews": 0.321, "accuracy": 0.7, "num_examples": 9}
    assert headline({"test": {"reports": {"all problems": report}}}) == "test 32.1 % (matthews)"


def test_the_headline_of_a_translator_has_no_percent():
    section = {"num_beams": 4, "reports": {"all problems": {"bleu": 34.557, "chrf": 56.9, "num_examples": 9}}}
    assert headline({"test": section}) == "test 34.557 (bleu, 4 beams)"
    problems = {"num_beams": 4, "reports": {"all problems": {"answer_accuracy": 0.25, "num_problems": 4}}}
    assert headline({"test": problems}) == "test 25.0 % (4 beams)"

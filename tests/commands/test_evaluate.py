import io
import json
import logging
import math
import re
import shutil
from pathlib import Path

import pytest
import torch

from hf_mwp import MwpSolver
from hf_mwp.commands.building.solver import load_solver
from hf_mwp.commands.main import main
from hf_mwp.commands.options.search_options import find_device
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.commands.tasks.loaded_data import keep_loaded, print_data_report
from hf_mwp.commands.tasks.math_word_problems import MathWordProblems
from hf_mwp.commands.terminal.console import CommandConsole
from hf_mwp.solver.metrics import FAILURE_REASONS, calibration_report
from hf_mwp.utils.usage_error import UsageError


def test_tables_and_predictions(solver_folder, problems, tmp_path, capsys):
    path = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main(argv) == 0
    shown = " ".join(capsys.readouterr().out.split())  # a title with long paths is wrapped
    for part in (
        "all problems",
        "masked text not in training split",
        "(?i)not known|unknown",
        "wrong",
        "'annotated'",
    ):
        assert re.search(part, shown)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert len(records) == 9
    assert all(record["reason"] == "correct" or record["reason"] in FAILURE_REASONS for record in records)
    assert {"text", "equation", "answer", "prediction", "value", "masked_text_in_training_split"} <= records[0].keys()
    # All tiny problems come from six templates, so every masked text occurs in the training split.
    assert all(record["masked_text_in_training_split"] for record in records)


def test_json_agrees_with_the_records(solver_folder, problems, tmp_path, capsys):
    path = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert (
        main(
            [*argv, "--json", "--num_beams=2", "--answer_match=equation_value", "--split=validation", "--batch_size=3"]
        )
        == 0
    )
    result = json.loads(capsys.readouterr().out)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    right = sum(record["answer_correct"] for record in records)
    assert result["reports"]["all problems"]["answer_accuracy"] == pytest.approx(right / len(records))
    assert (result["num_beams"], result["answer_match"], len(records)) == (2, "equation_value", 8)


def test_batches_do_not_change_the_answers(solver_folder, problems, tmp_path):
    texts = []
    for size in (1, 64):
        path = tmp_path / "predictions.jsonl"
        argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
        assert main([*argv, f"--batch_size={size}"]) == 0
        records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        texts.append([(record["id"], record["prediction"]) for record in records])
    assert texts[0] == texts[1]


def test_a_part_that_is_not_there(solver_folder, problems, tmp_path, capsys):
    only = tmp_path / "only.jsonl"
    only.write_text((problems / "test.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(only), "--split=validation"]
    assert main([*argv, "--validation_fraction=0"]) == 1
    assert "'validation'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--dataset=math23k"], "evaluate: .*`model`"),
        (["--model=none"], "evaluate: .*`dataset`"),
    ],
)
def test_what_must_be_given(argv, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *argv]) == 1
    error = capsys.readouterr().err
    assert re.search(message, error) and error.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_a_data_set_in_another_language_is_refused(solver_folder, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "Ann has 3 pens and buys 4. How many has she?", "equation": "3+4", "answer": "7"}\n')
    assert main(["evaluate", "--model", str(solver_folder), "--dataset", str(path)]) == 1
    error = capsys.readouterr().err
    assert re.search(f"{solver_folder} .*Chinese.*{path} .*English", error)
    assert [each.name for each in tmp_path.rglob("*.*")] == ["test.jsonl"]


def test_predictions_go_to_a_folder_of_their_own(solver_folder, problems, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems / "test.jsonl"), "--batch_size=9"]
    assert main(argv) == 0
    path = Path("runs", f"evaluate_{solver_folder.name}_test.jsonl_test", "predictions.jsonl")
    assert path.is_file() and f"Predictions: {path}" in capsys.readouterr().out
    # A later run replaces it.
    assert main([*argv, "--max_eval_samples=2"]) == 0
    assert len(path.read_text("utf-8").splitlines()) == 2


def test_the_folder_of_another_run_stays(solver_folder, problems, tmp_path, capsys):
    (tmp_path / "run.json").write_text('{"command": "hf-mwp train"}')
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main(argv) == 1
    assert re.search(f"{tmp_path} .*hf-mwp train", capsys.readouterr().err)
    assert [each.name for each in tmp_path.iterdir()] == ["run.json"]


def test_the_evaluation_of_another_model_stays(solver_folder, problems, tmp_path, capsys):
    argv = ["evaluate", "--dataset", str(problems), "--output_dir", str(tmp_path / "out"), "--model"]
    assert main([*argv, str(solver_folder)]) == 0
    other = shutil.copytree(solver_folder, tmp_path / "other")
    assert main([*argv, str(other)]) == 1
    assert f"contains the evaluation of {solver_folder}" in capsys.readouterr().err
    assert main([*argv, str(solver_folder), "--num_beams", "2"]) == 0


@pytest.mark.parametrize("change", ["dataset", "split"])
def test_the_evaluation_of_other_problems_stays(change, solver_folder, problems, tmp_path, capsys):
    argv = ["evaluate", "--model", str(solver_folder), "--output_dir", str(tmp_path / "out"), "--dataset"]
    assert main([*argv, str(problems)]) == 0
    before = (tmp_path / "out" / "predictions.jsonl").read_text("utf-8")
    other = shutil.copytree(problems, tmp_path / problems.name) if change == "dataset" else problems
    assert main([*argv, str(other), *(["--split", "validation"] if change == "split" else [])]) == 1
    kept = problems if change == "dataset" else "test"
    assert f"contains the evaluation of {kept}" in capsys.readouterr().err
    assert main([*argv, str(problems), "--reverse_held_out", "true"]) == 1
    assert "(reverse_held_out)" in capsys.readouterr().err
    assert (tmp_path / "out" / "predictions.jsonl").read_text("utf-8") == before


def test_a_place_that_cannot_be_is_named_before_solving(solver_folder, problems, tmp_path, capsys, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(MwpSolver, "solve", None)
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems)]
    for place in (tmp_path / "file", Path("/dev/null"), Path("/proc/none")):
        assert main([*argv, "--output_dir", str(place)]) == 1
        shown = " ".join(capsys.readouterr().err.split())
        assert str(place) in shown or "another output folder" in shown


@pytest.mark.parametrize("limit", ["max_eval_samples", "max_train_samples"])
def test_some_training_problems_alone(limit, solver_folder, problems, tmp_path):
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--split=train"]
    assert main([*argv, f"--{limit}=3", "--output_dir", str(tmp_path)]) == 0
    assert len((tmp_path / "predictions.jsonl").read_text("utf-8").splitlines()) == 3


def test_damaged_data_is_named(solver_folder, tmp_path, capsys):
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "1 和 2", "answer": "3"}\n{"text": "1 和', encoding="utf-8")
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(path), "--output_dir", str(tmp_path / "p")]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert "test.jsonl" in error and "line 2" in error


@pytest.mark.parametrize("option", ["num_beams", "batch_size", "max_decode_length"])
def test_counts_are_at_least_one(option, capsys):
    assert main(["evaluate", "--model", "no_such_model", f"--{option}=0"]) == 1
    assert re.search(f"`{option}`.* 0", capsys.readouterr().err)


def test_the_log_of_a_run_that_failed_is_closed(solver_folder, problems, tmp_path, monkeypatch, capsys):
    def fail(*args, **kwargs):
        raise ValueError("no room")

    before = [list(logging.getLogger(name).handlers) for name in ("transformers", "hf_mwp")]
    argv = ["evaluate", "--model", str(solver_folder), "--output_dir", str(tmp_path / "run")]
    monkeypatch.setattr(MwpSolver, "solve", fail)
    assert main([*argv, "--dataset", str(problems)]) == 1
    assert "no room" in capsys.readouterr().err and (tmp_path / "run" / "run.log").is_file()
    assert [list(logging.getLogger(name).handlers) for name in ("transformers", "hf_mwp")] == before


@pytest.mark.parametrize("device", ["gpu", "tpu", "cuda:99", "xla", "meta", "0", "cpu:", "mps:7"])
@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", "--model=none", "--dataset=none", "--output_dir={folder}"],
        ["pseudo-label", "--model=none", "--output_dir={folder}", "--problems=p.jsonl"],
        ["solve", "--model=none", "1 and 2"],
    ],
    ids=lambda argv: argv[0],
)
def test_a_device_that_is_not_there(argv, device, tmp_path, capsys):
    folder = tmp_path / "run"
    assert main([each.format(folder=folder) for each in argv] + [f"--device={device}"]) == 1
    error = capsys.readouterr().err
    assert re.search(f"--device: .*{device!r}.* cpu", error)
    assert not folder.exists()


def test_devices_that_are_there(monkeypatch):
    for device in ("cpu", "cpu:0", find_device(None), find_device("")):
        assert find_device(device) == device
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "device_count", lambda: 2)
    for device in ("cpu", "cuda", "cuda:0", "cuda:1"):
        assert find_device(device) == device
    for device in ("gpu", "cuda:2", "mps"):
        with pytest.raises(UsageError, match=f"'{device}'.* cpu, cuda:0, cuda:1"):
            find_device(device)


def test_a_text_without_numbers_is_refused_as_the_pipeline_refuses_it(solver_folder, tmp_path, capsys):
    path = tmp_path / "test.jsonl"
    rows = [{"text": "小明有4个苹果和2个梨", "answer": "6"}, {"text": "没有数字", "equation": "1", "answer": "1"}]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    records = tmp_path / "predictions.jsonl"
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(path), "--output_dir", str(tmp_path)]
    assert main([*argv, "--json", "--num_beams=3"]) == 0
    report = json.loads(capsys.readouterr().out)["reports"]["all problems"]
    assert report["num_problems"] == 2
    second = json.loads(records.read_text(encoding="utf-8").splitlines()[1])
    assert (second["prediction"], second["value"], second["log_probability"]) == ("", None, None)
    assert (second["answer_correct"], second["reason"]) == (False, "no_numbers")


def test_calibration_is_measured_and_shown(solver_folder, problems, tmp_path, capsys):
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(tmp_path)]
    assert main(argv) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "probability" in shown and "surest of 9" in shown
    report = json.loads((tmp_path / "metrics.json").read_text())["test"]["calibration"]
    records = [json.loads(line) for line in (tmp_path / "predictions.jsonl").open(encoding="utf-8")]
    probabilities = [0.0 if each["log_probability"] is None else math.exp(each["log_probability"]) for each in records]
    assert report == calibration_report(probabilities, [each["answer_correct"] for each in records])


def test_weights_can_be_rounded_as_they_are_published(solver_folder, problems, tmp_path, monkeypatch):
    loaded = load_solver(str(solver_folder))
    weight = next(loaded[0].parameters())
    before = weight.detach().clone()
    monkeypatch.setattr(MathWordProblems, "load_model", lambda *_: loaded)
    argv = ["evaluate", "--model", str(solver_folder), "--dataset", str(problems)]
    argv += ["--output_dir", str(tmp_path)]
    assert main(argv) == 0
    assert torch.equal(weight, before)
    assert main([*argv, "--half_precision"]) == 0
    assert torch.equal(weight, before.half().float()) and not torch.equal(weight, before)


def test_the_same_data_are_told_of_once(problems):
    console = CommandConsole(width=100, record=True, file=io.StringIO())
    with keep_loaded():
        for options in ({}, {"max_train_samples": 3}, {"drop_overlap": "test"}):
            print_data_report(MathWordProblems(DataArguments(dataset=str(problems), **options)), console)
    print_data_report(MathWordProblems(DataArguments(dataset=str(problems))), console)
    told = console.export_text().splitlines()
    assert [line.partition(",")[0] for line in told if ", split" in line] == [problems.name] * 3


def test_contexts_and_kinds_have_figures_of_their_own(solver_folder, tmp_path, capsys):
    rows = [
        {
            "id": str(index),
            "original_text": f"小明有{index + 3}个苹果，又买了{total}个，{question}几个？",
            "ctx": "c13",
        }
        | {"equation": f"x={index + 3}{rest}", "ans": str(answer), "operators": len(rest) // 2}
        for index, (question, total, rest, answer) in enumerate([("有", 7, "", 3), ("一共有", 9, "+9", 13)])
    ]
    path = tmp_path / "unbiasedmwp_train.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    argv = ["evaluate", "--model", str(solver_folder), "--dataset=unbiasedmwp", "--data_dir", str(tmp_path)]
    assert main([*argv, "--json", "--output_dir", str(tmp_path / "run")]) == 0
    reports = json.loads(capsys.readouterr().out)["reports"]
    assert reports["all problems"]["num_contexts"] == 1
    assert [reports[kind]["num_problems"] for kind in ("0 operations", "1 operation")] == [1, 1]
    assert "num_contexts" not in reports["1 operation"]
    assert main([*argv, "--output_dir", str(tmp_path / "run")]) == 0
    shown = capsys.readouterr().out
    assert "contexts all right %" in shown and "1 operation" in shown

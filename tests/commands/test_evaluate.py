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
from hf_mwp.commands.options.search_options import find_device
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.commands.tasks.loaded_data import keep_loaded, print_data_report
from hf_mwp.commands.tasks.math_word_problems import MathWordProblems
from hf_mwp.commands.terminal.console import CommandConsole
from hf_mwp.solver.metrics import FAILURE_REASONS, calibration_report
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import read_json, read_rows, write_rows
from tests.slow_parameters import slow_after


def test_tables_agree_with_the_predictions(solver_folder, problems, tmp_path, output_of):
    output = output_of(
        "evaluate", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path, "--batch_size=4"
    )
    for words in ("all problems", "masked text not in training split", "wrong", "'annotated'", "surest of 9"):
        assert words in output
    records = read_rows(tmp_path / "predictions.jsonl")
    assert len(records) == 9
    assert {record["reason"] for record in records} <= {"correct", *FAILURE_REASONS}
    assert {"text", "equation", "answer", "prediction", "value"} <= records[0].keys()
    # All tiny problems come from six templates, so every masked text occurs in the training split.
    assert all(record["masked_text_in_training_split"] for record in records)
    probabilities = []
    for record in records:
        log_probability = record["log_probability"]
        probabilities.append(0.0 if log_probability is None else math.exp(log_probability))
    is_correct = [record["answer_correct"] for record in records]
    calibration = read_json(tmp_path / "metrics.json")["test"]["calibration"]
    assert calibration == calibration_report(probabilities, is_correct)


def test_json_agrees_with_the_predictions(solver_folder, problems, tmp_path, output_of):
    argv = ["evaluate", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path, "--json"]
    argv += ["--num_beams=2", "--answer_match=equation_value", "--split=validation", "--batch_size=3"]
    result = json.loads(output_of(*argv))
    assert (result["num_beams"], result["answer_match"]) == (2, "equation_value")
    records = read_rows(tmp_path / "predictions.jsonl")
    assert [record["id"] for record in records] == [row["id"] for row in read_rows(problems / "valid.jsonl")]
    accuracy = sum(record["answer_correct"] for record in records) / len(records)
    assert result["reports"]["all problems"]["answer_accuracy"] == pytest.approx(accuracy)


def test_missing_split_is_named(solver_folder, problems, tmp_path, error_of):
    path = shutil.copy(problems / "test.jsonl", tmp_path / "only.jsonl")
    argv = ["evaluate", "--model", solver_folder, "--dataset", path, "--split=validation"]
    assert "'validation'" in error_of(*argv, "--validation_fraction=0")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--dataset=math23k"], "evaluate: .*`model`"),
        (["--model=none"], "evaluate: .*`dataset`"),
        (["--model=none", "--num_beams=0"], "`num_beams`.* 0"),
        (["--model=none", "--batch_size=0"], "`batch_size`.* 0"),
        (["--model=none", "--max_decode_length=0"], "`max_decode_length`.* 0"),
    ],
)
def test_wrong_options_are_named(argv, message, tmp_path, monkeypatch, error_of):
    monkeypatch.chdir(tmp_path)
    assert re.search(message, error_of("evaluate", *argv))
    assert not any(tmp_path.iterdir())


def test_dataset_in_another_language_is_refused(solver_folder, tmp_path, monkeypatch, error_of):
    monkeypatch.chdir(tmp_path)
    row = {"text": "Ann has 3 pens and buys 4. How many has she?", "equation": "3+4", "answer": "7"}
    path = write_rows(tmp_path / "test.jsonl", [row])
    error = error_of("evaluate", "--model", solver_folder, "--dataset", path)
    assert re.search(f"{solver_folder} .*Chinese.*{path} .*English", error)
    assert [file.name for file in tmp_path.rglob("*.*")] == ["test.jsonl"]


def test_damaged_data_is_named(solver_folder, tmp_path, error_of):
    path = tmp_path / "test.jsonl"
    path.write_text('{"text": "1 和 2", "answer": "3"}\n{"text": "1 和', encoding="utf-8")
    error = error_of("evaluate", "--model", solver_folder, "--dataset", path, "--output_dir", tmp_path / "p")
    assert "test.jsonl" in error
    assert "line 2" in error


@pytest.mark.slow
def test_predictions_go_to_a_folder_of_their_own(solver_folder, problems, tmp_path, monkeypatch, output_of):
    monkeypatch.chdir(tmp_path)
    argv = ["evaluate", "--model", solver_folder, "--dataset", problems / "test.jsonl"]
    path = Path("runs", f"evaluate_{solver_folder.name}_test.jsonl_test", "predictions.jsonl")
    assert f"Predictions: {path}" in output_of(*argv, "--max_eval_samples=1")
    assert path.is_file()
    # A later run replaces it.
    output_of(*argv, "--max_eval_samples=2")
    assert len(read_rows(path)) == 2


@pytest.mark.slow
def test_evaluation_of_another_model_or_other_problems_is_kept(solver_folder, problems, tmp_path, output_of, error_of):
    folder = tmp_path / "out"
    argv = ["evaluate", "--max_eval_samples=1", "--output_dir", folder, "--model", solver_folder]
    argv += ["--dataset", problems]
    output_of(*argv)
    before = (folder / "predictions.jsonl").read_text("utf-8")
    model = shutil.copytree(solver_folder, tmp_path / "other")
    dataset = shutil.copytree(problems, tmp_path / problems.name)
    assert f"contains the evaluation of {solver_folder}" in error_of(*argv, "--model", model)
    assert f"contains the evaluation of {problems}" in error_of(*argv, "--dataset", dataset)
    assert "contains the evaluation of test" in error_of(*argv, "--split", "validation")
    assert "(reverse_held_out)" in error_of(*argv, "--reverse_held_out", "true")
    assert (folder / "predictions.jsonl").read_text("utf-8") == before
    output_of(*argv, "--num_beams", "2")


@pytest.mark.parametrize("limit", slow_after(1, ["max_train_samples", "max_eval_samples"]))
def test_training_problems_can_be_limited(limit, solver_folder, problems, tmp_path, output_of):
    argv = ["evaluate", "--model", solver_folder, "--dataset", problems, "--split=train"]
    output_of(*argv, f"--{limit}=3", "--output_dir", tmp_path)
    assert len(read_rows(tmp_path / "predictions.jsonl")) == 3


def test_log_of_a_run_that_failed_is_closed(solver_folder, problems, tmp_path, monkeypatch, error_of):
    def fail(*args, **kwargs):
        raise ValueError("no room")

    def handlers():
        return [list(logging.getLogger(name).handlers) for name in ("transformers", "hf_mwp")]

    before = handlers()
    monkeypatch.setattr(MwpSolver, "solve", fail)
    argv = ["evaluate", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path / "run"]
    assert "no room" in error_of(*argv)
    assert (tmp_path / "run" / "run.log").is_file()
    assert handlers() == before


@pytest.mark.parametrize(
    "argv",
    [
        ["evaluate", "--dataset=none", "--output_dir={folder}"],
        ["pseudo-label", "--output_dir={folder}", "--problems=p.jsonl"],
        ["rerank", "--dataset=none", "--output_dir={folder}"],
        ["solve", "1 and 2"],
    ],
    ids=lambda argv: argv[0],
)
def test_missing_device_is_named_first(argv, tmp_path, error_of):
    words = [word.format(folder=tmp_path / "run") for word in argv]
    assert re.search("--device: .*'cuda:99'.* cpu", error_of(*words, "--model=none", "--device=cuda:99"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("device", ["gpu", "tpu", "cuda:99", "xla", "meta", "0", "cpu:", "mps:7"])
def test_unknown_devices_are_refused(device):
    with pytest.raises(UsageError, match=f"--device: .*{device!r}.* cpu"):
        find_device(device)


def test_devices_of_the_machine_are_found(monkeypatch):
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


@pytest.mark.slow
def test_weights_can_be_rounded_as_they_are_published(solver_folder, problems, tmp_path, monkeypatch, output_of):
    loaded = load_solver(str(solver_folder))
    weight = next(loaded[0].parameters())
    before = weight.detach().clone()
    monkeypatch.setattr(MathWordProblems, "load_model", lambda *_: loaded)
    argv = ["evaluate", "--model", solver_folder, "--dataset", problems, "--output_dir", tmp_path]
    argv += ["--max_eval_samples=1"]
    output_of(*argv)
    assert torch.equal(weight, before)
    output_of(*argv, "--half_precision")
    assert torch.equal(weight, before.half().float())
    assert not torch.equal(weight, before)


@pytest.mark.slow
def test_same_data_are_reported_once(problems):
    console = CommandConsole(width=100, record=True, file=io.StringIO())
    with keep_loaded():
        for options in ({}, {"max_train_samples": 3}, {"drop_overlap": "test"}):
            print_data_report(MathWordProblems(DataArguments(dataset=str(problems), **options)), console)
    print_data_report(MathWordProblems(DataArguments(dataset=str(problems))), console)
    lines = console.export_text().splitlines()
    assert [line.partition(",")[0] for line in lines if ", split" in line] == [problems.name] * 3

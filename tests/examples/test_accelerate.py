"""Configurations for `accelerate launch`: read by Accelerate, DDP and FSDP also run by two processes on the CPU."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.utils import DistributedType
from safetensors.torch import load_file

from tests.examples.scripts import EXAMPLES


CONFIGS = {
    "ddp": (DistributedType.MULTI_GPU, {}),
    "fsdp": (DistributedType.FSDP, {"fsdp_version": 2}),
    "deepspeed_zero2": (DistributedType.DEEPSPEED, {"zero_stage": 2}),
    "deepspeed_zero3": (DistributedType.DEEPSPEED, {"zero_stage": 3, "zero3_save_16bit_model": True}),
}


def test_each_file_is_listed():
    folder = EXAMPLES / "accelerate"
    readme = (folder / "README.md").read_text("utf-8")
    assert {path.stem for path in folder.glob("*.yaml")} == CONFIGS.keys()
    for name in CONFIGS:
        assert f"({name}.yaml)" in readme


@pytest.mark.parametrize("name", CONFIGS)
def test_accelerate_reads_the_file(name):
    distributed_type, fields = CONFIGS[name]
    config = load_config_from_file(str(EXAMPLES / "accelerate" / f"{name}.yaml"))
    assert config.distributed_type == distributed_type
    assert (config.num_processes, config.mixed_precision) == (2, "bf16")
    options = (config.fsdp_config or {}) | (config.deepspeed_config or {})
    assert fields.items() <= options.items()


def launch(name, *arguments, module=("-m", "hf_mwp"), flags=()):
    """Runs `hf-mwp` in two processes with a configuration."""
    start = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--mixed_precision", "no"]
    start += ["--config_file", EXAMPLES / "accelerate" / f"{name}.yaml", "--main_process_port", "0", *flags, *module]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES.parent)}
    result = subprocess.run([*map(str, (*start, *arguments))], env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.slow
def test_two_processes_distil_and_solve(solver_folder, problems, tmp_path):
    student = tmp_path / "student"
    data = ["--teacher", solver_folder, "--dataset", problems, "--student_layers", "1", "--output_dir", student]
    steps = ["--max_steps", "2", "--per_device_train_batch_size", "4", "--use_cpu"]
    launch("ddp", "distill", *data, *steps)
    assert read_json(student / "run.json")["machine"]["world_size"] == 2
    answers = ["--file", problems / "test.jsonl", "--output", tmp_path / "answers.jsonl"]
    launch("ddp", "solve", "--model", student, *answers)
    assert len((tmp_path / "answers.jsonl").read_text("utf-8").splitlines()) == 9


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def logged_values(folder):
    rows = []
    for entry in read_json(folder / "trainer_state.json")["log_history"]:
        rows.append({name: value for name, value in entry.items() if name in LOGGED})
    return rows


def assert_same_weights(folder, expected_folder):
    weights = load_file(folder / "model.safetensors")
    expected = load_file(expected_folder / "model.safetensors")
    assert weights.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(weights[name], value, rtol=1e-4, atol=1e-5)


LOGGED = ("loss", "loss_hidden_1", "eval_loss", "eval_answer_accuracy", "grad_norm")
# The student's states are projected to the teacher's width, and its decoder has a rate of its own.
STUDENT = "--student_layers 1 --student_init random --student_hidden_size 8 --student_intermediate_size 16"
STUDENT += " --student_heads 2 --student_dropout 0"
STEPS = "--max_steps 4 --per_device_train_batch_size 4 --logging_steps 1 --learning_rate 1e-3"
STEPS += " --decoder_learning_rate 1e-2 --save_strategy steps --save_steps 2 --eval_strategy steps --eval_steps 2"


@pytest.mark.slow
def test_split_weights_become_those_of_whole_ones(solver_folder, problems, tmp_path, monkeypatch):
    arguments = ["distill", "--teacher", solver_folder, "--dataset", problems, *STUDENT.split(), *STEPS.split()]
    whole = tmp_path / "whole"
    split = tmp_path / "split"
    # Without a device's number DDP takes a model on the CPU.
    monkeypatch.setenv("ACCELERATE_BYPASS_DEVICE_MAP", "true")
    on_cpu = {"module": [Path(__file__).with_name("split_on_cpu.py")]}
    launch("ddp", *arguments, "--output_dir", whole, **on_cpu)
    on_cpu["flags"] = ["--fsdp_transformer_layer_cls_to_wrap", "MwpStudentLayer"]
    launch("fsdp", *arguments, "--output_dir", split, **on_cpu)
    assert_same_weights(split, whole)
    for entry, expected in zip(logged_values(split), logged_values(whole), strict=True):
        assert entry == pytest.approx(expected, rel=1e-4, abs=1e-5)
    reports = read_json(split / "metrics.json")["test"]["reports"]
    assert reports == read_json(whole / "metrics.json")["test"]["reports"]

    # A killed run resumes with the projections and the optimizer's state.
    shutil.rmtree(split / "checkpoint-4")
    (split / "model.safetensors").unlink()
    launch("fsdp", *arguments, "--output_dir", split, "--resume", **on_cpu)
    assert_same_weights(split, whole)

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
    assert {path.stem for path in folder.glob("*.yaml")} == {*CONFIGS}
    assert all(f"({name}.yaml)" in (folder / "README.md").read_text("utf-8") for name in CONFIGS)


@pytest.mark.parametrize("name", CONFIGS)
def test_accelerate_reads_it(name):
    kind, fields = CONFIGS[name]
    config = load_config_from_file(str(EXAMPLES / "accelerate" / f"{name}.yaml"))
    assert (config.distributed_type, config.num_processes, config.mixed_precision) == (kind, 2, "bf16")
    own = {**(config.fsdp_config or {}), **(config.deepspeed_config or {})}
    assert {key: own[key] for key in fields} == fields


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
    assert json.loads((student / "run.json").read_text("utf-8"))["machine"]["world_size"] == 2
    answers = ["--file", problems / "test.jsonl", "--output", tmp_path / "answers.jsonl"]
    launch("ddp", "solve", "--model", student, *answers)
    assert len((tmp_path / "answers.jsonl").read_text("utf-8").splitlines()) == 9


@pytest.mark.slow
def test_split_weights_become_those_of_whole_ones(solver_folder, problems, tmp_path, monkeypatch):
    # The student's states are projected to the teacher's width, and its decoder has a rate of its own.
    sizes = ["--student_layers", "1", "--student_init", "random", "--student_hidden_size", "8"]
    sizes += ["--student_intermediate_size", "16", "--student_heads", "2", "--student_dropout", "0"]
    steps = ["--max_steps", "4", "--per_device_train_batch_size", "4", "--logging_steps", "1"]
    steps += ["--learning_rate", "1e-3", "--decoder_learning_rate", "1e-2", "--save_strategy", "steps"]
    steps += ["--save_steps", "2", "--eval_strategy", "steps", "--eval_steps", "2"]
    given = ["distill", "--teacher", solver_folder, "--dataset", problems, *sizes, *steps, "--output_dir"]
    whole, split = tmp_path / "whole", tmp_path / "split"
    # Without a device's number DDP takes a model on the CPU.
    monkeypatch.setenv("ACCELERATE_BYPASS_DEVICE_MAP", "true")
    on_cpu = {"module": [Path(__file__).with_name("split_on_cpu.py")]}
    launch("ddp", *given, whole, **on_cpu)
    on_cpu["flags"] = ["--fsdp_transformer_layer_cls_to_wrap", "MwpStudentLayer"]
    launch("fsdp", *given, split, **on_cpu)
    expected = load_file(whole / "model.safetensors")
    logs = [json.loads((each / "trainer_state.json").read_text("utf-8"))["log_history"] for each in (whole, split)]
    reports = [json.loads((each / "metrics.json").read_text("utf-8"))["test"]["reports"] for each in (whole, split)]

    def check():
        found = load_file(split / "model.safetensors")
        assert found.keys() == expected.keys()
        for name, value in expected.items():
            torch.testing.assert_close(found[name], value, rtol=1e-4, atol=1e-5)

    check()
    names = ("loss", "loss_hidden_1", "eval_loss", "eval_answer_accuracy", "grad_norm")
    logs = [[{name: entry[name] for name in names if name in entry} for entry in log] for log in logs]
    assert logs[1] == [pytest.approx(entry, rel=1e-4, abs=1e-5) for entry in logs[0]]
    assert reports[0] == reports[1]

    # A killed run resumes with the projections and the optimizer's state.
    shutil.rmtree(split / "checkpoint-4")
    (split / "model.safetensors").unlink()
    launch("fsdp", *given, split, "--resume", **on_cpu)
    check()

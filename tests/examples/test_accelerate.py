"""Configurations for `accelerate launch`: read by Accelerate and, for DDP, run by two processes on the CPU."""

import os
import subprocess
import sys

import pytest
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.utils import DistributedType

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


@pytest.mark.slow
def test_two_processes_distil_and_solve(solver_folder, problems, tmp_path):
    start = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch"]
    start += ["--config_file", str(EXAMPLES / "accelerate" / "ddp.yaml"), "--cpu", "--mixed_precision", "no"]
    start += ["--main_process_port", "0", "-m", "hf_mwp"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES.parent)}
    student = tmp_path / "student"
    commands = (
        [
            "distill",
            "--teacher",
            solver_folder,
            "--dataset",
            problems,
            "--student_layers",
            "1",
            "--output_dir",
            student,
        ]
        + ["--max_steps", "2", "--per_device_train_batch_size", "4", "--use_cpu"],
        ["solve", "--model", student, "--file", problems / "test.jsonl", "--output", tmp_path / "answers.jsonl"],
    )
    for command in commands:
        result = subprocess.run([*start, *map(str, command)], env=environment, capture_output=True, text=True)
        assert result.returncode == 0, result.stderr[-3000:]
    assert len((tmp_path / "answers.jsonl").read_text("utf-8").splitlines()) == 9

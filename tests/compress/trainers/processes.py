"""Trainings in processes of their own: starting them, killing them, and what they leave behind. Not a test."""

import contextlib
import gc
import json
import multiprocessing
import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pytest
import torch
from transformers import TrainerCallback

from hf_mwp.commands.main import main
from hf_mwp.utils.main_process import end_process_group


# A server that has imported everything and has trained nothing: what it forks begins at once.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["tests.compress.trainers.run_training", "tests.solver.training.run_pretraining"])
LIMIT = 300  # seconds


def start(train, runs, processes=1):
    """Starts a function on one run after another, in one process or in several that train together."""
    group = {}
    if processes > 1:
        with socket.socket() as free_socket:
            free_socket.bind(("localhost", 0))
            port = free_socket.getsockname()[1]
        group = {"MASTER_ADDR": "localhost", "MASTER_PORT": str(port), "WORLD_SIZE": str(processes)}
        group["LOCAL_WORLD_SIZE"] = str(processes)
    started = []
    for rank in range(processes):
        environment = {**os.environ, **group}
        if processes > 1:
            environment |= {"RANK": str(rank), "LOCAL_RANK": str(rank)}
        descriptor, output = tempfile.mkstemp(suffix=".txt", dir=Path(runs[0]["output_dir"]).parent)
        os.close(descriptor)
        process = CONTEXT.Process(target=run_all, args=(train, runs, environment, output))
        process.start()
        started.append((process, Path(output)))
    return started


def finish(started):
    """Waits for processes; where one fails, the others are not waited for long."""
    end = time.monotonic() + LIMIT
    processes = [process for process, _ in started]
    while any(process.is_alive() for process in processes) and time.monotonic() < end:
        time.sleep(0.02)
        if any(process.exitcode for process in processes):
            end = min(end, time.monotonic() + 20)
    exit_code = 0
    for process in processes:
        process.kill()
        process.join()
        exit_code = exit_code or process.exitcode
    text = "".join(output.read_text("utf-8") for _, output in started)
    return subprocess.CompletedProcess([], exit_code, stderr=text)


def launch(train, runs, processes=1):
    """Starts processes and waits for them."""
    return finish(start(train, runs, processes))


def run_all(train, runs, environment, output):
    """What such a process does; all that it says is in the file `output`."""
    with open(output, "w", encoding="utf-8") as file:
        for stream in (1, 2):
            os.dup2(file.fileno(), stream)
    os.environ.update(environment)
    gc.freeze()
    tempfile.tempdir = None
    torch.set_num_threads(1)
    for run in runs:
        train(run)
    end_process_group()
    assert not gloo_threads()


def train_and_write(trainer, run, **extra):
    """Trains, saves and evaluates; returns log, figures and `extra`, and writes them to the run's `result`."""
    trainer.train(resume_from_checkpoint=run.get("resume", False))
    trainer.save_model()
    result = {"metrics": trainer.evaluate(), "log": trainer.state.log_history}
    for name, value in extra.items():
        result[name] = value()
    if trainer.is_world_process_zero():
        Path(run["result"]).write_text(json.dumps(result), "utf-8")
    return result


def close(records, expected_records):
    """Equal records; probabilities of other batches may differ in their last digits."""
    for record, expected in zip(records, expected_records, strict=True):
        assert record.keys() == expected.keys()
        for name, value in expected.items():
            if isinstance(value, float):
                value = pytest.approx(value, rel=1e-4)
            assert record[name] == value, name


def run_command(run):
    """Runs `hf-mwp` with the arguments `argv`."""
    assert main(run["argv"]) == 0


def gloo_threads():
    """Names of the threads of Gloo in this process; none where the system does not list them."""
    names = []
    for path in Path("/proc/self/task").glob("*/comm"):
        with contextlib.suppress(OSError):
            names.append(path.read_text().strip())
    return [name for name in names if "gloo" in name]


class KillAtStep(TrainerCallback):
    """What a power failure does: no exception, no clean-up."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)

"""Trainings in processes of their own: starting them, killing them, and what they leave behind. Not a test."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import torch
from transformers import TrainerCallback

from hf_mwp.trainers.processes import end_process_group


ROOT = Path(__file__).parents[2]


def start(script, runs, processes=1):
    """Starts `python script JSON`, or `torchrun`, with a list of runs."""
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path}
    command = [sys.executable]
    if processes > 1:
        command += ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"]
    command += [str(script), json.dumps(runs)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, cwd=ROOT, **pipes)


def finish(process):
    """Waits for a process."""
    output, errors = process.communicate(timeout=300)
    return subprocess.CompletedProcess(process.args, process.returncode, output, errors)


def launch(script, runs, processes=1):
    """Starts a process and waits for it."""
    return finish(start(script, runs, processes))


def train_and_write(trainer, run, **extra):
    """Trains, saves and evaluates; returns log, figures and `extra`, and writes them to the run's `result`."""
    trainer.train(resume_from_checkpoint=run.get("resume", False))
    trainer.save_model()
    result = {"metrics": trainer.evaluate(), "log": trainer.state.log_history}
    result |= {name: value() for name, value in extra.items()}
    if trainer.is_world_process_zero():
        Path(run["result"]).write_text(json.dumps(result), "utf-8")
    return result


def run_all(function):
    """What the scripts do as programs: one run after another."""
    torch.set_num_threads(1)
    for run in json.loads(sys.argv[1]):
        function(run)
    end_process_group()
    assert not gloo_threads()


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

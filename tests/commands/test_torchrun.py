import os
import subprocess
import sys

import pytest

from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import read_json


@pytest.mark.slow
def test_two_processes_train_a_solver(problems, encoder, tmp_path, repository):
    folder = tmp_path / "run"
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc_per_node=2", "--standalone", "-m", "hf_mwp"]
    command += ["train", "--dataset", str(problems), "--encoder", str(encoder), "--output_dir", str(folder)]
    command += ["--use_cpu", "--ddp_backend=gloo", "--num_train_epochs=1", "--per_device_train_batch_size=8"]
    command += ["--eval_strategy=epoch", "--save_strategy=epoch", "--load_best_model_at_end"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, cwd=repository, env=environment, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("solver, test") == 1
    assert MwpSolver.from_pretrained(folder).config.num_hidden_layers == 2
    assert read_json(folder / "run.json")["machine"]["world_size"] == 2
    assert "test" in read_json(folder / "metrics.json")

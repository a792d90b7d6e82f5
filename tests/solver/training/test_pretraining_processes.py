"""A killed pretraining that is resumed, and two processes that pretrain together."""

import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.compress.trainers.processes import launch
from tests.solver.training.run_pretraining import pretrain


NUMBERS = ["loss", "mlm_loss", "pos_loss", "grad_norm"]


def losses(result):
    return [{name: entry[name] for name in NUMBERS} for entry in result["log"] if "mlm_loss" in entry]


def figures(result):
    return {name: value for name, value in result["metrics"].items() if "loss" in name or "pos" in name}


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_resuming_after_kill_in_the_middle_of_an_epoch_is_bitwise_exact(precision, tmp_path):
    # 6 steps an epoch; saved after steps 4 and 8; killed at step 9: resumed in the middle of the second epoch, and
    # the masks of the third are those of the third.
    run = {"dropout": 0.2, "args": {"num_train_epochs": 3, "per_device_train_batch_size": 4}}
    run["args"] |= {"gradient_accumulation_steps": 2, "save_steps": 4, "save_strategy": "steps"}
    run["args"]["bf16"] = precision == "bf16"
    whole = {**run, "output_dir": str(tmp_path / "whole"), "result": str(tmp_path / "whole.json")}
    broken = {**run, "output_dir": str(tmp_path / "broken"), "result": str(tmp_path / "broken.json")}
    expected = pretrain(whole)
    killed = launch(pretrain, [{**broken, "kill_at_step": 9}])
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert (tmp_path / "broken" / "checkpoint-8").is_dir() and not Path(broken["result"]).exists()
    resumed = pretrain({**broken, "resume": True})

    ours, theirs = (load_file(tmp_path / name / "model.safetensors") for name in ("broken", "whole"))
    assert ours.keys() == theirs.keys() and all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert len(losses(expected)) > 12 and losses(resumed)[8:] == losses(expected)[8:]
    assert figures(resumed) == figures(expected)
    # The second process found the encoded texts of the first, for training and for evaluation.
    assert len(list((tmp_path / "broken" / "encoded").glob("*/*.arrow"))) == 2


def test_two_processes_pretrain_and_evaluate_as_one(tmp_path):
    args = {"num_train_epochs": 2, "save_strategy": "no"}
    args |= {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 3, "ddp_backend": "gloo"}
    run = {"args": args, "output_dir": str(tmp_path / "two"), "result": str(tmp_path / "two.json")}
    done = launch(pretrain, [run], processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads(Path(run["result"]).read_text("utf-8"))
    alone = {**run, "output_dir": str(tmp_path / "one"), "args": {**args, "ddp_backend": None}}
    alone["args"] |= {"per_device_train_batch_size": 8, "per_device_eval_batch_size": 8}
    expected = pretrain(alone)
    ours, theirs = losses(got), losses(expected)
    assert len(ours) == len(theirs) >= 8
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, rel=2e-4, abs=1e-5)
    # The held-out texts do not fill the last batches of two processes: those that fill them must not count.
    assert figures(got) == pytest.approx(figures(expected), rel=1e-4)

"""A killed pretraining that is resumed, and two processes that pretrain together."""

import json
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.compress.trainers.processes import launch
from tests.solver.training.run_pretraining import pretrain


def logged_losses(result):
    losses = []
    for entry in result["log"]:
        if "mlm_loss" in entry:
            losses.append([entry[name] for name in ("loss", "mlm_loss", "pos_loss", "grad_norm")])
    return losses


def metrics_of(result):
    return {name: value for name, value in result["metrics"].items() if "loss" in name or "pos" in name}


def make_run(folder, name, dropout=0.0, **args):
    return {
        "output_dir": str(folder / name),
        "result": str(folder / f"{name}.json"),
        "dropout": dropout,
        "args": {"per_device_train_batch_size": 4, **args},
    }


@pytest.mark.slow
@pytest.mark.parametrize("bf16", [False, True])
def test_resuming_after_kill_in_the_middle_of_an_epoch_is_bitwise_exact(bf16, tmp_path):
    # 3 steps an epoch; saved after steps 2 and 4; killed at step 5: resumed in the middle of the second epoch, and
    # the masks of the third are those of the third.
    args = {"num_train_epochs": 3, "gradient_accumulation_steps": 2, "save_steps": 2, "save_strategy": "steps"}
    args["bf16"] = bf16
    expected = pretrain(make_run(tmp_path, "whole", dropout=0.2, **args))
    run = make_run(tmp_path, "broken", dropout=0.2, **args)
    killed = launch(pretrain, [{**run, "kill_at_step": 5}])
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert (tmp_path / "broken" / "checkpoint-4").is_dir()
    assert not Path(run["result"]).exists()
    resumed = pretrain({**run, "resume": True})

    weights = load_file(tmp_path / "broken" / "model.safetensors")
    expected_weights = load_file(tmp_path / "whole" / "model.safetensors")
    assert weights.keys() == expected_weights.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, expected_weights[name]), name
    assert len(logged_losses(expected)) == 9
    assert logged_losses(resumed)[4:] == logged_losses(expected)[4:]
    assert metrics_of(resumed) == metrics_of(expected)
    # The second process found the encoded texts of the first, for training and for evaluation.
    assert len(list((tmp_path / "broken" / "encoded").glob("*/*.arrow"))) == 2


@pytest.mark.slow
def test_two_processes_pretrain_and_evaluate_as_one(tmp_path):
    args = {"num_train_epochs": 2, "save_strategy": "no"}
    run = make_run(tmp_path, "two", **args, per_device_eval_batch_size=3, ddp_backend="gloo")
    finished = launch(pretrain, [run], processes=2)
    assert finished.returncode == 0, finished.stderr[-3000:]
    result = json.loads(Path(run["result"]).read_text("utf-8"))
    single = make_run(tmp_path, "one", **args, per_device_eval_batch_size=8)
    single["args"]["per_device_train_batch_size"] = 8
    expected = pretrain(single)
    losses = logged_losses(result)
    assert len(losses) == 6
    for values, expected_values in zip(losses, logged_losses(expected), strict=True):
        assert values == pytest.approx(expected_values, rel=2e-4, abs=1e-5)
    # The held-out texts do not fill the last batches of two processes; repeated texts must not count.
    assert metrics_of(result) == pytest.approx(metrics_of(expected), rel=1e-4)

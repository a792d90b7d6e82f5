"""What needs processes of its own: a killed training that is resumed, and two processes that train together."""

import json
import re
import signal
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from hf_mwp.compress.distillation import TeacherCache
from hf_mwp.utils.checkpoints import last_complete_checkpoint
from tests.compress.trainers.processes import finish, launch, start
from tests.compress.trainers.run_training import train


NUMBERS = [
    "loss",
    "loss_soft",
    "loss_soft_answer",
    "loss_hard",
    "loss_hidden_1",
    "loss_hidden_2",
    "loss_embedding",
    "grad_norm",
]


def losses(result):
    return [{name: entry[name] for name in NUMBERS if name in entry} for entry in result["log"] if "loss" in entry]


@pytest.mark.parametrize("trainer", ["solver", "distillation"])
def test_resuming_after_kill_in_the_middle_of_an_epoch_is_bitwise_exact(trainer, tmp_path):
    # 5 steps an epoch; saved after steps 4 and 8; killed at step 9: resumed in the middle of the second epoch.
    run = {"trainer": trainer, "dropout": 0.2, "args": {"num_train_epochs": 3, "per_device_train_batch_size": 4}}
    run["args"] |= {"gradient_accumulation_steps": 2, "save_steps": 4, "save_strategy": "steps"}
    whole = {**run, "output_dir": str(tmp_path / "whole"), "result": str(tmp_path / "whole.json")}
    broken = {**run, "output_dir": str(tmp_path / "broken"), "result": str(tmp_path / "broken.json")}
    expected = train(whole)
    killed = launch(train, [{**broken, "kill_at_step": 9}])
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    assert (tmp_path / "broken" / "checkpoint-8").is_dir() and not Path(broken["result"]).exists()
    resumed = train({**broken, "resume": True})

    files = ["model.safetensors", "checkpoint-12/model.safetensors"]
    if trainer == "distillation":
        files.append("checkpoint-12/distillation_projections.safetensors")
    for name in files:
        ours, theirs = (load_file(tmp_path / run_name / name) for run_name in ("broken", "whole"))
        assert ours.keys() == theirs.keys()
        for key, value in theirs.items():
            assert torch.equal(ours[key], value), (name, key)
    optimizers = [torch.load(tmp_path / n / "checkpoint-12" / "optimizer.pt") for n in ("broken", "whole")]
    for number, state in optimizers[1]["state"].items():
        assert all(torch.equal(value, optimizers[0]["state"][number][name]) for name, value in state.items())

    assert losses(resumed)[8:] == losses(expected)[8:]
    assert resumed["metrics"]["eval_loss"] == expected["metrics"]["eval_loss"]


def test_two_processes_train_and_evaluate_as_one(tmp_path):
    runs = []
    prune = {"max_ratio": 0.5, "num_pruning_steps": 2, "calibration_examples": 8}
    kinds = [
        ("solver", {"save_strategy": "epoch"}, {"prune": prune}),
        ("distillation", {}, {}),
        ("distillation", {"hidden_loss": "nst"}, {"mix": 0.5}),
        ("distillation", {}, {"decoder": "athena"}),
    ]
    for number, (trainer, extra, fields) in enumerate(kinds):
        args = {"num_train_epochs": 2, "save_strategy": "no", **extra}
        args |= {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4, "ddp_backend": "gloo"}
        folder = {"output_dir": str(tmp_path / str(number)), "result": str(tmp_path / f"{number}.json")}
        runs.append({"trainer": trainer, "rows": 32, "args": args, **folder, **fields})
    done = launch(train, runs, processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    for run in runs:
        got = json.loads(Path(run["result"]).read_text("utf-8"))
        alone = {**run, "output_dir": f"{run['output_dir']}-alone", "args": {**run["args"], "ddp_backend": None}}
        alone["args"] |= {"per_device_train_batch_size": 8, "per_device_eval_batch_size": 8}
        expected = train(alone)
        ours = losses(got)
        theirs = losses(expected)
        assert len(ours) == len(theirs) == 8
        # Losses of an untrained judge are sums of dozens of large ones, and Adam divides rounding by small gradients.
        judges = "decoder" in run
        for a, b in zip(ours, theirs, strict=True):
            assert a == pytest.approx(b, rel=1e-3 if judges else 2e-5, abs=1e-6)
            assert ("loss_hidden_2" in a) == (run["trainer"] == "distillation")
        # Heads are scored on the same examples, however many processes there are.
        assert got.get("heads") == expected.get("heads")
        # 21 problems do not fill the last batches of two processes: those that fill them must not count.
        metrics = {name: value for name, value in expected["metrics"].items() if "accuracy" in name or "num" in name}
        assert metrics.items() <= got["metrics"].items()
        assert metrics["eval_num_problems"] == 21
        ours, theirs = (load_file(f"{each['output_dir']}/model.safetensors") for each in (run, alone))
        close = {"rtol": 1e-3, "atol": 1e-4} if judges else {"rtol": 1e-4, "atol": 1e-6}
        for name, value in theirs.items():
            torch.testing.assert_close(ours[name], value, **close)

    checkpoint = Path(runs[0]["output_dir"]) / "checkpoint-8"
    assert last_complete_checkpoint(checkpoint.parent) == str(checkpoint)
    # As if the process had been killed before it wrote its file.
    (checkpoint / "rng_state_1.pth").unlink()
    assert last_complete_checkpoint(checkpoint.parent) == str(checkpoint.with_name("checkpoint-4"))


def cached_run(folder, **fields):
    args = {"num_train_epochs": 2, "per_device_train_batch_size": 8, "per_device_eval_batch_size": 4}
    args |= {"cache_teacher_outputs": True, "save_strategy": "no"}
    run = {"trainer": "distillation", "distinct": True, "args": args, "shard_bytes": 30_000}
    return {**run, "output_dir": str(folder), "result": f"{folder}.json", **fields}


def cached_numbers(folder):
    """All rows of the only cache in a folder, by key."""
    (manifest,) = folder.glob("*/manifest.json")
    cache = TeacherCache(manifest.parent, manifest.parent.name)
    keys = [row["key"] for row in cache.rows(range(len(cache)), ["key"])]
    rows = cache.read(keys)
    return {key: {name: value.tobytes() for name, value in row.items()} for key, row in zip(keys, rows, strict=True)}


def test_resuming_after_kill_while_the_cache_is_written_is_bitwise_exact(tmp_path):
    whole = cached_run(tmp_path / "whole")
    broken = cached_run(tmp_path / "broken")
    expected = train(whole)
    # Several batches of four rows are a file: those of the last one are lost.
    killed = launch(train, [{**broken, "kill_at_cached": 20}])
    assert killed.returncode == -signal.SIGKILL, killed.stderr[-3000:]
    kept = len(cached_numbers(tmp_path / "broken" / "teacher_cache"))
    assert 0 < kept < 20
    resumed = train(broken)
    assert resumed["cached"] == 40 - kept and expected["cached"] == 40
    ours, theirs = (cached_numbers(tmp_path / name / "teacher_cache") for name in ("broken", "whole"))
    assert ours == theirs and len(ours) == 40
    assert losses(resumed) == losses(expected)


def test_processes_share_a_cache(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    # Two that train together, and afterwards two that do not know of each other, with a folder of their own.
    together = cached_run(tmp_path / "together")
    together["args"] |= {"ddp_backend": "gloo", "per_device_train_batch_size": 4}
    done = launch(train, [together], processes=2)
    assert done.returncode == 0, done.stderr[-3000:]
    got = json.loads(Path(together["result"]).read_text("utf-8"))
    assert got["cached"] == 40 and not list(temporary.glob("hf_mwp-*"))
    runs = [cached_run(tmp_path / name) for name in ("first", "second")]
    for run in runs:
        run["args"]["teacher_cache_dir"] = str(tmp_path / "shared")
    processes = [start(train, [run]) for run in runs]
    for process in processes:
        done = finish(process)
        assert done.returncode == 0, done.stderr[-3000:]
    first, second = (json.loads(Path(run["result"]).read_text("utf-8")) for run in runs)
    assert sorted([first["cached"], second["cached"]]) == [0, 40]
    assert losses(first) == losses(second)
    assert cached_numbers(tmp_path / "shared") == cached_numbers(tmp_path / "together" / "teacher_cache")
    for a, b in zip(losses(got), losses(first), strict=True):
        assert a == pytest.approx(b, rel=2e-5, abs=1e-6)


def test_what_is_wrong_with_a_shared_cache_is_told(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    run = cached_run(tmp_path / "run")
    run["args"] |= {"ddp_backend": "gloo", "teacher_cache_dir": str(tmp_path / "cache")}
    done = launch(train, [run], processes=2)
    assert done.returncode == 1
    assert re.search(f"Not a directory.*{tmp_path}/cache", done.stderr)

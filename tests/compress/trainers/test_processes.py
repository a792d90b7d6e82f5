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
from tests.slow_parameters import slow_after


def losses(result):
    """Losses and gradients of all steps."""
    steps = []
    for entry in result["log"]:
        if "loss" in entry:
            steps.append({name: value for name, value in entry.items() if name.startswith(("loss", "grad_norm"))})
    return steps


def result_of(run):
    return json.loads(Path(run["result"]).read_text("utf-8"))


def run_of(folder, trainer, args, **fields):
    return {"trainer": trainer, "args": args, "output_dir": str(folder), "result": f"{folder}.json", **fields}


def assert_killed(result):
    assert result.returncode == -signal.SIGKILL, result.stderr[-3000:]


def assert_finished(result):
    assert result.returncode == 0, result.stderr[-3000:]


@pytest.mark.parametrize("trainer", slow_after(1, ["solver", "distillation"]))
def test_resuming_after_kill_in_the_middle_of_an_epoch_is_bitwise_exact(trainer, tmp_path):
    # 3 steps an epoch; saved after steps 2 and 4; killed at step 5: resumed in the middle of the second epoch.
    args = {"num_train_epochs": 2, "per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    args |= {"save_steps": 2, "save_strategy": "steps"}
    uninterrupted = run_of(tmp_path / "uninterrupted", trainer, args, dropout=0.2, rows=24)
    interrupted = run_of(tmp_path / "interrupted", trainer, args, dropout=0.2, rows=24)
    expected = train(uninterrupted)
    assert_killed(launch(train, [{**interrupted, "kill_at_step": 5}]))
    assert (tmp_path / "interrupted" / "checkpoint-4").is_dir()
    assert not Path(interrupted["result"]).exists()
    resumed = train({**interrupted, "resume": True})

    files = ["model.safetensors", "checkpoint-6/model.safetensors"]
    if trainer == "distillation":
        files.append("checkpoint-6/distillation_projections.safetensors")
    for name in files:
        weights = load_file(tmp_path / "interrupted" / name)
        expected_weights = load_file(tmp_path / "uninterrupted" / name)
        assert weights.keys() == expected_weights.keys()
        for key, value in expected_weights.items():
            assert torch.equal(weights[key], value), (name, key)
    optimizer = torch.load(tmp_path / "interrupted" / "checkpoint-6" / "optimizer.pt")["state"]
    expected_optimizer = torch.load(tmp_path / "uninterrupted" / "checkpoint-6" / "optimizer.pt")["state"]
    for number, state in expected_optimizer.items():
        for name, value in state.items():
            assert torch.equal(value, optimizer[number][name])
    assert losses(resumed)[4:] == losses(expected)[4:]
    assert resumed["metrics"]["eval_loss"] == expected["metrics"]["eval_loss"]


PRUNE = {"max_ratio": 0.5, "num_pruning_steps": 2, "calibration_examples": 8}


RUNS = {
    "solver": {"trainer": "solver", "prune": PRUNE},
    "distillation": {"trainer": "distillation"},
    "causal": {"trainer": "causal"},
    "nst": {"trainer": "distillation", "mix": 0.5},
    "judge": {"trainer": "distillation", "decoder": "athena"},
}


@pytest.mark.parametrize("names", slow_after(1, [["solver", "distillation", "causal"], ["nst", "judge"]]))
def test_two_processes_train_and_evaluate_as_one(names, tmp_path):
    args = {"num_train_epochs": 1, "save_strategy": "no", "ddp_backend": "gloo"}
    args |= {"per_device_train_batch_size": 4, "per_device_eval_batch_size": 4}
    changes = {"solver": {"save_strategy": "steps", "save_steps": 2}, "nst": {"hidden_loss": "nst"}}
    runs = [run_of(tmp_path / name, args=args | changes.get(name, {}), rows=32, **RUNS[name]) for name in names]
    assert_finished(launch(train, runs, processes=2))
    alone_args = {"ddp_backend": None, "per_device_train_batch_size": 8, "per_device_eval_batch_size": 8}
    for run in runs:
        result = result_of(run)
        alone_folder = f"{run['output_dir']}-alone"
        expected = train({**run, "output_dir": alone_folder, "args": run["args"] | alone_args})
        # Losses of an untrained judge are sums of dozens of large ones, and Adam divides rounding by small gradients.
        is_judge = "decoder" in run
        assert len(losses(result)) == 4
        for entry, expected_entry in zip(losses(result), losses(expected), strict=True):
            assert entry == pytest.approx(expected_entry, rel=1e-3 if is_judge else 2e-5, abs=1e-6)
            assert ("loss_hidden_2" in entry) == (run["trainer"] != "solver")
        # Heads are scored on the same examples, however many processes there are.
        assert result.get("heads") == expected.get("heads")
        # 21 problems do not fill the last batches of two processes: those that fill them must not count.
        assert run["trainer"] == "causal" or expected["metrics"]["eval_num_problems"] == 21
        for name, value in expected["metrics"].items():
            if "accuracy" in name or "num" in name:
                assert result["metrics"][name] == value
            if "perplexity" in name:
                assert result["metrics"][name] == pytest.approx(value, rel=1e-4)
        weights = load_file(f"{run['output_dir']}/model.safetensors")
        tolerances = {"rtol": 1e-3, "atol": 1e-4} if is_judge else {"rtol": 1e-4, "atol": 1e-6}
        for name, value in load_file(f"{alone_folder}/model.safetensors").items():
            torch.testing.assert_close(weights[name], value, **tolerances)

    if "solver" in names:
        checkpoint = tmp_path / "solver" / "checkpoint-4"
        assert last_complete_checkpoint(checkpoint.parent) == str(checkpoint)
        # As if the process had been killed before it wrote its file.
        (checkpoint / "rng_state_1.pth").unlink()
        assert last_complete_checkpoint(checkpoint.parent) == str(checkpoint.with_name("checkpoint-2"))


def cached_run(folder, **changes):
    args = {"num_train_epochs": 1, "per_device_train_batch_size": 8, "per_device_eval_batch_size": 4}
    args |= {"cache_teacher_outputs": True, "save_strategy": "no"}
    return run_of(folder, "distillation", args | changes, distinct=True, shard_bytes=30_000)


def cached_outputs(folder):
    """All rows of the only cache in a folder, by key."""
    (manifest,) = folder.glob("*/manifest.json")
    cache = TeacherCache(manifest.parent, manifest.parent.name)
    keys = [row["key"] for row in cache.rows(range(len(cache)), ["key"])]
    outputs = {}
    for key, row in zip(keys, cache.read(keys), strict=True):
        outputs[key] = {name: value.tobytes() for name, value in row.items()}
    return outputs


@pytest.mark.slow
def test_resuming_after_kill_while_the_cache_is_written_is_bitwise_exact(tmp_path):
    interrupted = cached_run(tmp_path / "interrupted")
    expected = train(cached_run(tmp_path / "uninterrupted"))
    # Several batches of four rows are a file: those of the last one are lost.
    assert_killed(launch(train, [{**interrupted, "kill_at_cached": 20}]))
    num_cached = len(cached_outputs(tmp_path / "interrupted" / "teacher_cache"))
    assert 0 < num_cached < 20
    resumed = train(interrupted)
    assert resumed["cached"] == 40 - num_cached
    assert expected["cached"] == 40
    outputs = cached_outputs(tmp_path / "interrupted" / "teacher_cache")
    assert len(outputs) == 40
    assert outputs == cached_outputs(tmp_path / "uninterrupted" / "teacher_cache")
    assert losses(resumed) == losses(expected)


@pytest.mark.slow
def test_processes_share_a_cache(tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    # Two that train together, and afterwards two that do not know of each other, with a folder of their own.
    run = cached_run(tmp_path / "together", ddp_backend="gloo", per_device_train_batch_size=4)
    assert_finished(launch(train, [run], processes=2))
    together = result_of(run)
    assert together["cached"] == 40
    assert not list(temporary.glob("hf_mwp-*"))
    first_run = cached_run(tmp_path / "first", teacher_cache_dir=str(tmp_path / "shared"))
    second_run = cached_run(tmp_path / "second", teacher_cache_dir=str(tmp_path / "shared"))
    processes = [start(train, [first_run]), start(train, [second_run])]
    for process in processes:
        assert_finished(finish(process))
    first = result_of(first_run)
    second = result_of(second_run)
    assert sorted([first["cached"], second["cached"]]) == [0, 40]
    assert losses(first) == losses(second)
    assert cached_outputs(tmp_path / "shared") == cached_outputs(tmp_path / "together" / "teacher_cache")
    for entry, expected_entry in zip(losses(together), losses(first), strict=True):
        assert entry == pytest.approx(expected_entry, rel=2e-5, abs=1e-6)


@pytest.mark.slow
def test_an_error_of_a_shared_cache_ends_both_processes(tmp_path):
    (tmp_path / "cache").write_text("no folder")
    run = cached_run(tmp_path / "run", ddp_backend="gloo", teacher_cache_dir=str(tmp_path / "cache"))
    result = launch(train, [run], processes=2)
    assert result.returncode == 1
    assert re.search(f"Not a directory.*{tmp_path}/cache", result.stderr)

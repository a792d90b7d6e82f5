import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hf_mwp.compress.distillation.objectives import HardLabels, SoftLabels
from hf_mwp.compress.trainers import DistillationConfig, stage_folders
from hf_mwp.compress.trainers.stage_folders import describe_training, digest_of_rows, run_together
from hf_mwp.utils.files import write_json
from hf_mwp.utils.job import LOCK, RECORD, Job, digest_of, process_lock
from tests.compress.trainers.distilling import QUIET
from tests.compress.trainers.processes import finish, launch, start


ROWS = [{"input_ids": [1, 2]}, {"input_ids": [3]}]
ONE_PROCESS = SimpleNamespace(distributed_state=None)
BEST = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}


def digest(folder="run", rows=ROWS, eval_rows=None, methods=(), free=(), **fields):
    args = DistillationConfig(output_dir=folder, **QUIET, **fields)
    data = {"train_dataset": rows, "eval_dataset": eval_rows, "data_collator": None, "processing_class": None}
    return digest_of(describe_training(args, data, methods, free))


@pytest.mark.parametrize(
    "fields",
    [
        {"folder": "elsewhere", "logging_nan_inf_filter": False, "per_device_eval_batch_size": 2},
        {"save_total_limit": 2},
    ],
)
def test_folders_logs_and_evaluation_batches_are_not_in_the_digest(fields):
    assert digest(**fields) == digest()


def test_fields_that_only_the_loop_reads_are_not_in_the_digest():
    assert digest(temperature=3.0, free=["temperature"]) == digest(free=["temperature"])


def test_arguments_rows_and_methods_are_in_the_digest():
    digests = {
        digest(),
        digest(temperature=3.0),
        digest(rows=ROWS[:1]),
        digest(eval_rows=ROWS),
        digest(eval_rows={"a": ROWS}),
        digest(eval_rows={"a": ROWS[:1]}),
        digest(eval_rows={"b": ROWS}),
        digest(methods=[SoftLabels()]),
        digest(methods=[HardLabels()]),
        digest(**BEST),
        digest(**BEST, early_stopping_patience=2),
    }
    assert len(digests) == 11


def test_rows_of_one_split_are_not_those_of_another():
    assert digest_of_rows({"a": ROWS, "b": None}) != digest_of_rows({"a": None, "b": ROWS})


def test_a_completed_folder_is_not_filled_again_and_refused_for_another_job(tmp_path):
    calls = []
    job = Job(tmp_path / "trial", {"seed": "abc"})
    run_together(job, lambda: calls.append(1), ONE_PROCESS)
    run_together(job, lambda: calls.append(1), ONE_PROCESS)
    with pytest.raises(ValueError, match=r"\babc\b.*\bdef\b"):
        run_together(Job(tmp_path / "trial", {"seed": "def"}), lambda: calls.append(1), ONE_PROCESS)
    assert len(calls) == 1
    assert job.is_done


def test_checkpoints_are_removed_after_the_job_is_recorded(tmp_path, monkeypatch):
    job = Job(tmp_path / "trial", {"seed": "abc"})
    remove_checkpoints = stage_folders.remove_checkpoints

    def remove_of_recorded_job(folder):
        assert job.is_done
        remove_checkpoints(folder)

    monkeypatch.setattr(stage_folders, "remove_checkpoints", remove_of_recorded_job)
    run_together(job, lambda: (job.path / "checkpoint-2").mkdir(), ONE_PROCESS)
    assert not (job.path / "checkpoint-2").exists()


def fill(run):
    """Fills a folder in one of several processes; each leaves a file when it begins, and when it works."""
    from accelerate import PartialState

    state = PartialState(cpu=True)
    job = Job(Path(run["output_dir"]), {"seed": "abc"})
    state.wait_for_everyone()
    job.path.with_name(f"begun-{state.process_index}").touch()
    work = job.path.with_name(f"worked-{state.process_index}").touch
    run_together(job, work, SimpleNamespace(distributed_state=state))


@pytest.mark.slow
def test_a_folder_that_another_run_fills_meanwhile_is_not_filled_by_any_process(tmp_path):
    folder = tmp_path / "trial"
    with process_lock(folder / LOCK):
        started = start(fill, [{"output_dir": str(folder)}], 2)
        while len(list(tmp_path.glob("begun-*"))) < 2:
            assert all(process.is_alive() for process, _ in started)
            time.sleep(0.02)
        # Time for a process that does not wait for the main process.
        time.sleep(0.5)
        write_json(folder / RECORD, {"fingerprint": digest_of({"seed": "abc"})})
    result = finish(started)
    assert result.returncode == 0, result.stderr[-3000:]
    assert not list(tmp_path.glob("worked-*"))
    assert launch(fill, [{"output_dir": str(tmp_path / "other")}], 2).returncode == 0
    assert len(list(tmp_path.glob("worked-*"))) == 2

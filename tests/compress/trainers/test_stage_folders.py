import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from hf_mwp.compress.distillation.objectives import HardLabels, SoftLabels
from hf_mwp.compress.trainers import DistillationConfig, stage_folders
from hf_mwp.compress.trainers.stage_folders import describe_training, digest_of_rows, run_together
from hf_mwp.utils.files import write_json
from hf_mwp.utils.job import LOCK, RECORD, Job, digest_of, process_lock
from tests.compress.trainers.processes import finish, launch, start


ROWS = [{"input_ids": [1, 2]}, {"input_ids": [3]}]


def digest(folder, rows=ROWS, eval_rows=None, methods=(), free=(), **fields):
    args = DistillationConfig(output_dir=str(folder), use_cpu=True, report_to="none", **fields)
    data = {"train_dataset": rows, "eval_dataset": eval_rows, "data_collator": None, "processing_class": None}
    return digest_of(describe_training(args, data, methods, free))


def test_what_a_training_depends_on(tmp_path):
    before = digest(tmp_path)
    # Places, logs and devices do not count, nor what only the loop reads.
    assert digest(tmp_path / "other", logging_nan_inf_filter=False, per_device_eval_batch_size=2) == before
    assert digest(tmp_path, temperature=3.0, free=["temperature"]) == digest(tmp_path, free=["temperature"])
    others = [
        digest(tmp_path, temperature=3.0),
        digest(tmp_path, rows=ROWS[:1]),
        digest(tmp_path, eval_rows=ROWS),
        digest(tmp_path, eval_rows={"a": ROWS}),
        digest(tmp_path, eval_rows={"a": ROWS[:1]}),
        digest(tmp_path, eval_rows={"b": ROWS}),
        digest(tmp_path, methods=[SoftLabels()]),
        digest(tmp_path, methods=[HardLabels()]),
    ]
    assert len({before, *others}) == 9
    assert digest(tmp_path, save_total_limit=2) == before
    patient = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    assert digest(tmp_path, early_stopping_patience=2, **patient) != digest(tmp_path, **patient)


def test_rows_of_one_part_are_not_those_of_another():
    assert digest_of_rows({"a": ROWS, "b": None}) != digest_of_rows({"a": None, "b": ROWS})


def test_filled_with_something_else_it_is_refused(tmp_path):
    one_process = SimpleNamespace(distributed_state=None)
    calls = []
    folder = Job(tmp_path / "trial", {"seed": "abc"})
    for _ in range(2):
        run_together(folder, lambda: calls.append(1), one_process)
    assert calls == [1]
    with pytest.raises(ValueError, match=r"\babc\b.*\bdef\b"):
        run_together(Job(tmp_path / "trial", {"seed": "def"}), lambda: calls.append(2), one_process)
    assert calls == [1] and folder.is_done


def test_checkpoints_go_only_after_the_work_is_recorded(tmp_path, monkeypatch):
    one_process = SimpleNamespace(distributed_state=None)
    found = []
    folder = Job(tmp_path / "trial", {"seed": "abc"})
    remove = stage_folders.remove_checkpoints

    def note(path):
        found.append((folder.is_done, (path / "checkpoint-2").is_dir()))
        remove(path)

    monkeypatch.setattr(stage_folders, "remove_checkpoints", note)
    run_together(folder, lambda: (folder.path / "checkpoint-2").mkdir(), one_process)
    assert found == [(True, True)] and not (folder.path / "checkpoint-2").exists()


def fill(run):
    """Fills a folder in one of several processes; each leaves a file when it begins, and when it works."""
    from accelerate import PartialState

    state = PartialState(cpu=True)
    folder = Job(Path(run["output_dir"]), {"seed": "abc"})
    mark = folder.path.with_name("{}-" + str(state.process_index))
    state.wait_for_everyone()
    Path(str(mark).format("begun")).touch()
    work = Path(str(mark).format("worked")).touch
    run_together(folder, work, SimpleNamespace(distributed_state=state))


def test_a_folder_that_another_run_fills_meanwhile_is_not_filled_by_any_process(tmp_path):
    folder = tmp_path / "trial"
    with process_lock(folder / LOCK):
        started = start(fill, [{"output_dir": str(folder)}], 2)
        while not all((tmp_path / f"begun-{rank}").exists() for rank in range(2)):
            assert all(process.is_alive() for process, _ in started)
            time.sleep(0.02)
        # Time for a process that does not wait for the main process.
        time.sleep(1)
        write_json(folder / RECORD, {"fingerprint": digest_of({"seed": "abc"})})
    done = finish(started)
    assert done.returncode == 0, done.stderr[-3000:]
    assert not list(tmp_path.glob("worked-*"))
    assert launch(fill, [{"output_dir": str(tmp_path / "other")}], 2).returncode == 0
    assert len(list(tmp_path.glob("worked-*"))) == 2

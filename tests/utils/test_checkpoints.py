import pytest
import torch
from safetensors.torch import save_file

from hf_mwp.utils.checkpoints import (
    announce_files,
    invalidate_checkpoint,
    is_complete,
    last_complete_checkpoint,
    remove_checkpoints,
)


@pytest.mark.parametrize(
    ("checkpoints", "expected"),
    [
        ({}, None),
        ({"checkpoint-5": "{}"}, "checkpoint-5"),
        ({"checkpoint-9": "{}", "checkpoint-10": "{}"}, "checkpoint-10"),
        ({"checkpoint-9": "{}", "checkpoint-10": None}, "checkpoint-9"),
        ({"checkpoint-9": "{}", "checkpoint-10": '{"epoch": 1.'}, "checkpoint-9"),
        ({"checkpoint-9": "{}", "checkpoint-old": "{}", "checkpoint-10.part": "{}"}, "checkpoint-9"),
        ({"checkpoint-3": None}, None),
    ],
)
def test_the_newest_complete_checkpoint(tmp_path, checkpoints, expected):
    for name, state in checkpoints.items():
        (tmp_path / name).mkdir()
        if state is not None:
            (tmp_path / name / "trainer_state.json").write_text(state)
    assert last_complete_checkpoint(tmp_path) == (None if expected is None else str(tmp_path / expected))


def test_a_checkpoint_whose_files_are_cut_off_is_not_complete(tmp_path):
    (tmp_path / "trainer_state.json").write_text("{}")
    save_file({"a": torch.zeros(3)}, tmp_path / "model.safetensors")
    for name in ("optimizer.pt", "rng_state.pth"):
        torch.save({"a": torch.zeros(3)}, tmp_path / name)
    assert is_complete(tmp_path)
    for name in ("model.safetensors", "optimizer.pt", "rng_state.pth"):
        whole = (tmp_path / name).read_bytes()
        for part in (b"", whole[:4], whole[:-1]):
            (tmp_path / name).write_bytes(part)
            assert not is_complete(tmp_path)
        (tmp_path / name).write_bytes(whole)
    assert is_complete(tmp_path)
    invalidate_checkpoint(tmp_path)
    assert not is_complete(tmp_path)
    invalidate_checkpoint(tmp_path / "missing")


@pytest.mark.parametrize(
    ("announced", "files", "expected"),
    [
        (None, [], True),
        (None, ["rng_state.pth"], True),
        (None, ["rng_state_0.pth", "rng_state_1.pth"], True),
        # A plain `Trainer` does not tell the number of processes.
        (None, ["rng_state_1.pth"], False),
        (None, ["rng_state_0.pth", "rng_state_2.pth"], False),
        ([0, 1], ["rng_state_0.pth", "rng_state_1.pth"], True),
        ([0, 1], ["rng_state_0.pth"], False),
        ([0, 1], [], False),
        # One of two machines, each with its own disk.
        ([2, 3], ["rng_state_2.pth", "rng_state_3.pth"], True),
        ([2, 3], ["rng_state_3.pth"], False),
    ],
)
def test_a_checkpoint_that_lacks_the_random_state_of_a_process_is_not_complete(announced, files, expected, tmp_path):
    checkpoint = tmp_path / "checkpoint-5"
    checkpoint.mkdir()
    if announced is not None:
        announce_files(checkpoint, announced)
    (checkpoint / "trainer_state.json").write_text("{}")
    for name in files:
        torch.save({"a": torch.zeros(3)}, checkpoint / name)
    assert is_complete(checkpoint) is expected
    assert last_complete_checkpoint(tmp_path) == (str(checkpoint) if expected else None)


def test_a_folder_that_does_not_exist_has_none(tmp_path):
    assert last_complete_checkpoint(tmp_path / "missing") is None


def test_all_checkpoints_are_removed_and_nothing_else(tmp_path):
    for name in ("checkpoint-5", "checkpoint-10", "checkpoint-old", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").touch()
    (tmp_path / "checkpoint-7").touch()
    remove_checkpoints(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-7", "checkpoint-old", "other"]
    remove_checkpoints(tmp_path / "missing")


def test_of_a_linked_checkpoint_the_link_alone_is_removed(tmp_path):
    kept = tmp_path / "disk" / "checkpoint-5"
    kept.mkdir(parents=True)
    (kept / "trainer_state.json").write_text("{}")
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoint-5").symlink_to(kept)
    (run / "checkpoint-6").symlink_to(tmp_path / "missing")
    assert last_complete_checkpoint(run) == str(run / "checkpoint-5")
    remove_checkpoints(run)
    assert not any(run.iterdir()) and (kept / "trainer_state.json").is_file()

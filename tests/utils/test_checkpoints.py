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
        ({"checkpoint-9": "{}", "checkpoint-10": "{}"}, "checkpoint-10"),
        ({"checkpoint-9": "{}", "checkpoint-10": None}, "checkpoint-9"),
        ({"checkpoint-9": "{}", "checkpoint-10": '{"epoch": 1.'}, "checkpoint-9"),
        ({"checkpoint-9": "{}", "checkpoint-old": "{}", "checkpoint-10.part": "{}"}, "checkpoint-9"),
        ({"checkpoint-3": None}, None),
    ],
)
def test_newest_complete_checkpoint(checkpoints, expected, tmp_path):
    for name, state in checkpoints.items():
        (tmp_path / name).mkdir()
        if state is not None:
            (tmp_path / name / "trainer_state.json").write_text(state)
    assert last_complete_checkpoint(tmp_path) == (None if expected is None else str(tmp_path / expected))
    assert last_complete_checkpoint(tmp_path / "missing") is None


@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.pt", "rng_state.pth"])
def test_checkpoint_with_a_truncated_file_is_not_complete(name, tmp_path):
    (tmp_path / "trainer_state.json").write_text("{}")
    save_file({"a": torch.zeros(3)}, tmp_path / "model.safetensors")
    torch.save({"a": torch.zeros(3)}, tmp_path / "optimizer.pt")
    torch.save({"a": torch.zeros(3)}, tmp_path / "rng_state.pth")
    assert is_complete(tmp_path)
    content = (tmp_path / name).read_bytes()
    for truncated in (b"", content[:4], content[:-1]):
        (tmp_path / name).write_bytes(truncated)
        assert not is_complete(tmp_path)


def test_invalidated_checkpoint_is_not_complete(tmp_path):
    (tmp_path / "trainer_state.json").write_text("{}")
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
        # A plain `Trainer` does not announce the number of processes.
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
def test_checkpoint_needs_the_random_state_of_each_process(announced, files, expected, tmp_path):
    if announced is not None:
        announce_files(tmp_path, announced)
    (tmp_path / "trainer_state.json").write_text("{}")
    for name in files:
        torch.save({"a": torch.zeros(3)}, tmp_path / name)
    assert is_complete(tmp_path) is expected


def test_only_checkpoints_are_removed(tmp_path):
    for name in ("checkpoint-5", "checkpoint-10", "checkpoint-old", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.safetensors").touch()
    (tmp_path / "checkpoint-7").touch()
    remove_checkpoints(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["checkpoint-7", "checkpoint-old", "other"]
    remove_checkpoints(tmp_path / "missing")


def test_only_the_link_to_a_checkpoint_is_removed(tmp_path):
    linked = tmp_path / "disk" / "checkpoint-5"
    linked.mkdir(parents=True)
    (linked / "trainer_state.json").write_text("{}")
    run = tmp_path / "run"
    run.mkdir()
    (run / "checkpoint-5").symlink_to(linked)
    (run / "checkpoint-6").symlink_to(tmp_path / "missing")
    assert last_complete_checkpoint(run) == str(run / "checkpoint-5")
    remove_checkpoints(run)
    assert not any(run.iterdir()) and (linked / "trainer_state.json").is_file()

import os

import pytest

from hf_mwp.utils.job import RECORD, Job, digest_of


def test_work_is_done_once_and_told_of(tmp_path):
    folder, calls = Job.named(tmp_path, "teacher", {"sparsity": 0.5}), []

    def work():
        calls.append(folder.path)
        (folder.path / "metrics.json").write_text('{"accuracy": 0.5}')

    assert (folder.is_done, folder.record, folder.metrics, folder.is_begun) == (False, None, {}, False)
    assert folder.run(work, {"sparsity": 0.5}) and not folder.run(work)
    assert calls == [folder.path] and folder.path.name == f"teacher-{folder.fingerprint[:8]}"
    assert (folder.is_done, folder.metrics) == (True, {"accuracy": 0.5})
    assert folder.record.keys() == {"sparsity", "depends_on", "fingerprint", "seconds"}


def test_what_depends_on_something_else_has_another_folder(tmp_path):
    one, other = (Job.named(tmp_path, "trial", {"seed": seed, "sizes": (1, 2)}) for seed in (1, 2))
    assert one.path != other.path and digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    one.run(lambda: None)
    # Under the name of another one it is not done.
    one.path.rename(other.path)
    assert not other.is_done
    with pytest.raises(ValueError, match=r"different run \(seed: 1 -> 2\)"):
        other.check_folder()
    # The record of an earlier version names no inputs.
    (other.path / RECORD).write_text(f'{{"fingerprint": "{one.fingerprint}"}}')
    with pytest.raises(ValueError, match=f"{one.fingerprint} instead of {other.fingerprint}"):
        other.check_folder()


def test_work_that_failed_goes_on_where_it_was(tmp_path):
    folder = Job.named(tmp_path, "student", {"seed": 1})

    def fail():
        state = folder.path / "checkpoint-7" / "trainer_state.json"
        state.parent.mkdir()
        state.write_text("{}")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        folder.run(fail)
    assert not folder.is_done and folder.is_begun
    found = []
    assert folder.run(lambda: found.append(folder.checkpoint))
    assert found == [os.path.join(folder.path, "checkpoint-7")]


def test_what_the_folder_keeps_of_itself_is_no_work_begun(tmp_path):
    folder = Job.named(tmp_path, "student", {"seed": 1})
    with pytest.raises(ZeroDivisionError):
        folder.run(lambda: 1 / 0)
    assert [path.name for path in folder.path.iterdir() if path.name != "stage.lock"] == ["stage.start.json"]
    assert not folder.is_begun

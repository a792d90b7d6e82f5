import os

import pytest

from hf_mwp.utils.job import RECORD, Job, digest_of


def test_work_is_done_once_and_recorded(tmp_path):
    job = Job.named(tmp_path, "teacher", {"sparsity": 0.5})
    calls = []

    def work():
        calls.append(job.path)
        (job.path / "metrics.json").write_text('{"accuracy": 0.5}')

    assert (job.is_done, job.record, job.metrics, job.is_begun) == (False, None, {}, False)
    assert job.run(work, {"sparsity": 0.5})
    assert not job.run(work)
    assert calls == [job.path] and job.path.name == f"teacher-{job.fingerprint[:8]}"
    assert job.is_done and job.metrics == {"accuracy": 0.5}
    assert job.record.keys() == {"sparsity", "depends_on", "fingerprint", "seconds"}


def test_other_inputs_have_another_folder(tmp_path):
    first = Job.named(tmp_path, "trial", {"seed": 1, "sizes": (1, 2)})
    second = Job.named(tmp_path, "trial", {"seed": 2, "sizes": (1, 2)})
    assert first.path != second.path
    assert digest_of({"a": 1, "b": 2}) == digest_of({"b": 2, "a": 1})
    first.run(lambda: None)
    # Under the name of the second job it is not done.
    first.path.rename(second.path)
    assert not second.is_done
    with pytest.raises(ValueError, match=r"different run \(seed: 1 -> 2\)"):
        second.check_folder()
    # The record of an earlier version names no inputs.
    (second.path / RECORD).write_text(f'{{"fingerprint": "{first.fingerprint}"}}')
    with pytest.raises(ValueError, match=f"{first.fingerprint} instead of {second.fingerprint}"):
        second.check_folder()


def test_failed_work_resumes_from_its_checkpoint(tmp_path):
    job = Job.named(tmp_path, "student", {"seed": 1})

    def fail():
        state = job.path / "checkpoint-7" / "trainer_state.json"
        state.parent.mkdir()
        state.write_text("{}")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job.run(fail)
    assert not job.is_done and job.is_begun
    checkpoints = []
    assert job.run(lambda: checkpoints.append(job.checkpoint))
    assert checkpoints == [os.path.join(job.path, "checkpoint-7")]


def test_files_of_the_job_itself_are_no_begun_work(tmp_path):
    job = Job.named(tmp_path, "student", {"seed": 1})
    with pytest.raises(ZeroDivisionError):
        job.run(lambda: 1 / 0)
    assert (job.path / "stage.start.json").is_file()
    assert not job.is_begun

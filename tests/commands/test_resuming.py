import json

import pytest
from transformers import TrainingArguments

from hf_mwp.commands.options.run_options import ResumeArguments
from hf_mwp.commands.resuming import LENGTHS, MAY_DIFFER, begin_record, begin_run
from hf_mwp.commands.terminal.console import CommandConsole
from hf_mwp.utils.job import changed_values
from hf_mwp.utils.option import WITHOUT_EFFECT
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError


OLD = {"seed": 42, "learning_rate": 1e-4, "num_train_epochs": 2.0, "max_steps": -1, "logging_steps": 50.0}


class Config:
    def __init__(self, checkpoint=None):
        self.resume_from_checkpoint = checkpoint


@pytest.fixture
def begun(tmp_path):
    """A folder with a checkpoint and the record of the run that made it."""
    folder = tmp_path / "run"
    with RunFolder(folder, "train", OLD | {"output_dir": str(folder)}) as run:
        run.begin()
    (folder / "checkpoint-5").mkdir()
    (folder / "checkpoint-5" / "trainer_state.json").write_text("{}")
    return folder


def begin(folder, checkpoint=None, resume=True, overwrite=False, to=None, **options):
    console = CommandConsole(width=200, record=True, quiet=False)
    values = OLD | {"output_dir": str(to or folder)} | options
    with RunFolder(to or folder, "train", values) as run:
        given = begin_run(run, Config(checkpoint), ResumeArguments(resume, overwrite), console)
        begin_record(run, *given)
    return given[0], given[1], console.export_text()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"seed": 7}, "seed: 42 -> 7"),
        ({"learning_rate": 1e-3}, "learning_rate: 0.0001 -> 0.001"),
        ({"num_train_epochs": 1.0}, "num_train_epochs: 2.0 -> 1.0"),
        ({"max_steps": 3}, "max_steps: -1 -> 3"),
        ({"seed": 7, "learning_rate": 1.0}, "seed: 42 -> 7, learning_rate: 0.0001 -> 1.0"),
    ],
)
def test_other_options_are_refused_and_named_and_nothing_is_written(begun, options, told):
    before = {path.name: path.read_bytes() for path in begun.iterdir() if path.is_file()}
    with pytest.raises(UsageError) as raised:
        begin(begun, **options)
    assert told in str(raised.value)
    assert {path.name: path.read_bytes() for path in begun.iterdir() if path.is_file()} == before


def test_what_no_weight_depends_on_may_differ_and_each_start_is_kept(begun):
    checkpoint, changes, text = begin(begun, logging_steps=1.0)
    assert checkpoint == str(begun / "checkpoint-5") and changes == {"logging_steps": (50.0, 1.0)} and not text
    begin(begun, logging_steps=1.0)
    record = json.loads((begun / "run.json").read_text())
    assert record["resumed_from"] == checkpoint and record["changes"] == {}
    first, second = record["earlier_starts"]
    assert "resumed_from" not in first and second["changes"] == {"logging_steps": [50.0, 1.0]}
    assert "earlier_starts" not in second


def test_a_run_that_saved_no_optimizer_cannot_resume(begun):
    record = begun / "run_config.yaml"
    record.write_text(record.read_text() + "save_only_model: true\n")
    with pytest.raises(UsageError, match="run was trained with --save_only_model"):
        begin(begun, save_only_model=True)
    assert begin(begun, resume=False, overwrite=True, save_only_model=True)[0] is None


def test_more_epochs_say_what_they_mean(begun):
    _, changes, text = begin(begun, num_train_epochs=3.0)
    assert changes == {"num_train_epochs": (2.0, 3.0)}
    assert "num_train_epochs: 2.0 -> 3.0" in text and "schedule" in text


def test_another_number_of_processes_is_refused(begun, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="processes: 1 -> 2"):
        begin(begun)


def test_a_checkpoint_of_another_folder_has_its_own_options(begun, tmp_path):
    given = str(begun / "checkpoint-5")
    with pytest.raises(UsageError, match="seed: 42 -> 7"):
        begin(begun, given, resume=False, to=tmp_path / "other", seed=7)
    assert begin(begun, given, resume=False, to=tmp_path / "other")[0] == given
    (tmp_path / "other" / "config.json").touch()
    with pytest.raises(UsageError, match=r"config\.json.*--overwrite"):
        begin(begun, given, resume=False, to=tmp_path / "other")
    with pytest.raises(UsageError, match="--resume_from_checkpoint.*/no/such"):
        begin(begun, "/no/such", resume=False)


def test_a_run_that_began_from_a_checkpoint_of_another_folder_resumes_from_its_own(begun, tmp_path):
    other = tmp_path / "other" / "checkpoint-2"
    other.mkdir(parents=True)
    (other / "trainer_state.json").write_text("{}")
    assert begin(begun, str(other))[0] == str(begun / "checkpoint-5")


def test_a_finished_model_without_checkpoints_is_kept(tmp_path):
    (tmp_path / "config.json").touch()
    with pytest.raises(UsageError, match=r"config\.json.*--overwrite"):
        begin(tmp_path, resume=False)
    assert begin(tmp_path, resume=False, overwrite=True)[0] is None


def test_starting_anew_removes_checkpoints_when_it_begins(begun):
    with pytest.raises(UsageError, match="checkpoint-5.*--resume.*--overwrite"):
        begin(begun, resume=False)
    assert (begun / "checkpoint-5").exists()
    begin(begun)
    assert begin(begun, resume=False, overwrite=True, seed=7)[0] is None
    assert not (begun / "checkpoint-5").exists()
    assert "earlier_starts" not in json.loads((begun / "run.json").read_text())


@pytest.mark.parametrize("moved", ["same content", "gone"])
def test_files_that_have_moved_are_the_same(tmp_path, moved):
    old = tmp_path / "a" / "data"
    new = tmp_path / "b" / "data"
    for path in (old, new):
        path.mkdir(parents=True)
        (path / "train.jsonl").write_text("1" if moved == "same content" else str(path))
    if moved == "gone":
        old = tmp_path / "c" / "data"
    before, now = ({"files": [str(path)]} for path in (old, new))
    assert "files" not in changed_values(before, now)


def test_other_files_are_others(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    a, b, gone = (str(tmp_path / name) for name in ("a", "b", "c"))
    assert changed_values({"x": a}, {"x": b}) == {"x": (a, b)}
    assert changed_values({"x": gone}, {"x": b}) == {"x": (gone, b)}
    assert changed_values({"x": [a]}, {"x": [a, b]}) == {"x": ([a], [a, b])}
    assert changed_values({"old": 1}, {"new": 1}) == {}


def test_names_are_those_of_options():
    names = set(TrainingArguments.__dataclass_fields__)
    assert set(LENGTHS) <= names
    assert {
        "data_dir",
        "tag_cache",
        "test",
        "test_num_beams",
        "early_stopping_patience",
        *WITHOUT_EFFECT,
    } <= MAY_DIFFER
    assert not MAY_DIFFER & {"seed", "data_seed", "learning_rate", "optim", "per_device_train_batch_size", "fp16"}

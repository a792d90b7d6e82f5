import pytest
from transformers import TrainingArguments

from hf_mwp.commands.options.run_options import ResumeArguments
from hf_mwp.commands.resuming import LENGTHS, MAY_DIFFER, begin_record, begin_run
from hf_mwp.commands.terminal.console import CommandConsole
from hf_mwp.utils.job import changed_values
from hf_mwp.utils.option import WITHOUT_EFFECT
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import contents, read_json


OPTIONS = {"seed": 42, "learning_rate": 1e-4, "num_train_epochs": 2.0, "max_steps": -1, "logging_steps": 50.0}


class Config:
    def __init__(self, checkpoint):
        self.resume_from_checkpoint = checkpoint


def save_checkpoint(folder, step):
    checkpoint = folder / f"checkpoint-{step}"
    checkpoint.mkdir(parents=True)
    (checkpoint / "trainer_state.json").write_text("{}")
    return str(checkpoint)


@pytest.fixture
def run(tmp_path):
    """A folder with a checkpoint and the record of the run that made it."""
    folder = tmp_path / "run"
    with RunFolder(folder, "train", OPTIONS | {"output_dir": str(folder)}) as run_folder:
        run_folder.begin()
    save_checkpoint(folder, 5)
    return folder


def begin(folder, checkpoint=None, resume=True, overwrite=False, **options):
    """Begin a run, and return the checkpoint from which it resumes, the changed options, and the output."""
    console = CommandConsole(width=200, record=True, quiet=False)
    values = OPTIONS | {"output_dir": str(folder)} | options
    with RunFolder(folder, "train", values) as run_folder:
        checkpoint, changes = begin_run(run_folder, Config(checkpoint), ResumeArguments(resume, overwrite), console)
        begin_record(run_folder, checkpoint, changes)
    return checkpoint, changes, console.export_text()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"learning_rate": 1e-3}, "learning_rate: 0.0001 -> 0.001"),
        ({"num_train_epochs": 1.0}, "num_train_epochs: 2.0 -> 1.0"),
        ({"max_steps": 3}, "max_steps: -1 -> 3"),
        ({"seed": 7, "learning_rate": 1.0}, "seed: 42 -> 7, learning_rate: 0.0001 -> 1.0"),
    ],
)
def test_changed_options_are_refused_and_nothing_is_written(run, options, message):
    before = contents(run)
    with pytest.raises(UsageError, match=message):
        begin(run, **options)
    assert contents(run) == before


def test_options_without_effect_may_change_and_each_start_is_recorded(run):
    checkpoint, changes, output = begin(run, logging_steps=1.0)
    assert checkpoint == str(run / "checkpoint-5")
    assert changes == {"logging_steps": (50.0, 1.0)}
    assert not output
    begin(run, logging_steps=1.0)
    record = read_json(run / "run.json")
    assert (record["resumed_from"], record["changes"]) == (checkpoint, {})
    first, second = record["earlier_starts"]
    assert "resumed_from" not in first
    assert second["changes"] == {"logging_steps": [50.0, 1.0]}
    assert "earlier_starts" not in second


def test_run_that_saved_no_optimizer_cannot_resume(run):
    with (run / "run_config.yaml").open("a") as file:
        file.write("save_only_model: true\n")
    with pytest.raises(UsageError, match="run was trained with --save_only_model"):
        begin(run, save_only_model=True)
    assert begin(run, resume=False, overwrite=True, save_only_model=True)[0] is None


def test_more_epochs_print_their_effect(run):
    _, changes, output = begin(run, num_train_epochs=3.0)
    assert changes == {"num_train_epochs": (2.0, 3.0)}
    assert "num_train_epochs: 2.0 -> 3.0" in output


def test_another_number_of_processes_is_refused(run, monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(UsageError, match="processes: 1 -> 2"):
        begin(run)


def test_checkpoint_of_another_folder_has_its_own_options(run, tmp_path):
    other = tmp_path / "other"
    checkpoint = str(run / "checkpoint-5")
    with pytest.raises(UsageError, match="seed: 42 -> 7"):
        begin(other, checkpoint, resume=False, seed=7)
    assert begin(other, checkpoint, resume=False)[0] == checkpoint
    (other / "config.json").touch()
    with pytest.raises(UsageError, match=r"config\.json.*--overwrite"):
        begin(other, checkpoint, resume=False)
    with pytest.raises(UsageError, match="--resume_from_checkpoint.*/no/such"):
        begin(run, "/no/such", resume=False)


def test_run_from_a_checkpoint_of_another_folder_resumes_from_its_own(run, tmp_path):
    checkpoint = save_checkpoint(tmp_path / "other", 2)
    assert begin(run, checkpoint)[0] == str(run / "checkpoint-5")


def test_existing_model_is_replaced_only_on_demand(tmp_path):
    (tmp_path / "config.json").touch()
    with pytest.raises(UsageError, match=r"config\.json.*--overwrite"):
        begin(tmp_path, resume=False)
    with pytest.raises(UsageError, match=f"{tmp_path} has no checkpoint.*--resume"):
        begin(tmp_path)
    assert begin(tmp_path, resume=False, overwrite=True)[0] is None


def test_new_run_removes_the_checkpoints_of_the_old_one(run):
    with pytest.raises(UsageError, match="checkpoint-5.*--resume.*--overwrite"):
        begin(run, resume=False)
    assert (run / "checkpoint-5").exists()
    begin(run)
    assert begin(run, resume=False, overwrite=True, seed=7)[0] is None
    assert not (run / "checkpoint-5").exists()
    assert "earlier_starts" not in read_json(run / "run.json")


@pytest.mark.parametrize("old_exists", [True, False])
def test_moved_files_are_no_change(tmp_path, old_exists):
    old = tmp_path / "a" / "data"
    new = tmp_path / "b" / "data"
    for path in (old, new):
        path.mkdir(parents=True)
        (path / "train.jsonl").write_text("1")
    if not old_exists:
        (old / "train.jsonl").unlink()
        old.rmdir()
    assert "files" not in changed_values({"files": [str(old)]}, {"files": [str(new)]})


def test_files_with_other_contents_are_a_change(tmp_path):
    a = str(tmp_path / "a")
    b = str(tmp_path / "b")
    missing = str(tmp_path / "c")
    for path in (a, b):
        with open(path, "w") as file:
            file.write(path)
    assert changed_values({"x": a}, {"x": b}) == {"x": (a, b)}
    assert changed_values({"x": missing}, {"x": b}) == {"x": (missing, b)}
    assert changed_values({"x": [a]}, {"x": [a, b]}) == {"x": ([a], [a, b])}
    assert changed_values({"old": 1}, {"new": 1}) == {}


def test_names_are_those_of_options():
    assert set(LENGTHS) <= set(TrainingArguments.__dataclass_fields__)
    assert {"data_dir", "tag_cache", "test", "test_num_beams", "early_stopping_patience"} <= MAY_DIFFER
    assert WITHOUT_EFFECT <= MAY_DIFFER
    assert not MAY_DIFFER & {"seed", "data_seed", "learning_rate", "optim", "per_device_train_batch_size", "fp16"}

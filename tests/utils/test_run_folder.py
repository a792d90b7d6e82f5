import shutil
from pathlib import Path

import pytest
import yaml

from hf_mwp.commands.main import main
from hf_mwp.utils.run_folder import RunFolder, check_output_folder, describe_contents, last_options
from hf_mwp.utils.usage_error import UsageError


EXAMPLES = Path(__file__).parents[2] / "examples"


def test_two_runs_cannot_write_to_one_folder(tmp_path, monkeypatch):
    with RunFolder(tmp_path):
        with pytest.raises(UsageError, match=f"{tmp_path}.*Wait"):
            RunFolder(tmp_path, "train", {})
        # Of several processes of one run, only the first one holds the lock.
        monkeypatch.setenv("RANK", "1")
        with RunFolder(tmp_path):
            pass
    monkeypatch.delenv("RANK")
    assert not list(tmp_path.iterdir())
    with RunFolder(tmp_path, "train", {}) as folder:
        folder.begin()


def test_new_folder_is_removed_if_it_stays_empty(tmp_path):
    with RunFolder(tmp_path / "new"):
        assert (tmp_path / "new").is_dir()
    assert not (tmp_path / "new").exists()
    with RunFolder(tmp_path):
        pass
    assert tmp_path.is_dir()
    with RunFolder(tmp_path / "new") as folder:
        (folder.path / "file").touch()
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["file"]


@pytest.mark.parametrize(
    "name", ["config.json", "model.safetensors", "model-00001-of-00002.safetensors", "pytorch_model.bin"]
)
def test_model_is_overwritten_only_on_request(name, tmp_path):
    (tmp_path / "run_config.yaml").touch()
    with RunFolder(tmp_path) as folder:
        folder.check_unused(overwrite=False)
        (tmp_path / name).touch()
        with pytest.raises(UsageError, match=f"{name}.*--overwrite"):
            folder.check_unused(overwrite=False)
        folder.check_unused(overwrite=True)


def test_run_is_unfinished_until_its_metrics_are_written(tmp_path):
    with RunFolder(tmp_path, "train", {"seed": 1}) as folder:
        assert not folder.is_unfinished
        folder.begin()
        assert folder.is_unfinished
        folder.finish({})
        assert not folder.is_unfinished


def test_options_that_start_a_run_are_not_recorded(tmp_path):
    values = {"seed": 1, "overwrite": True, "resume": True, "resume_from_checkpoint": "a", "hub_token": "hf_secret"}
    with RunFolder(tmp_path, "train", values) as folder:
        folder.begin()
    assert yaml.safe_load((tmp_path / "run_config.yaml").read_text()) == {"seed": 1}


@pytest.mark.parametrize("content", ["", "- a", "a: ["])
def test_damaged_options_raise(content, tmp_path):
    (tmp_path / "run_config.yaml").write_text(content)
    with pytest.raises(UsageError, match="run_config.yaml cannot be read"):
        last_options(tmp_path)


def test_record_of_another_command_is_not_replaced(tmp_path):
    with RunFolder(tmp_path, "train", {"seed": 1}) as folder:
        folder.begin()
        folder.check_record()
    with RunFolder(tmp_path, "evaluate", {}) as folder:
        with pytest.raises(UsageError, match="`hf-mwp train`.*`hf-mwp evaluate`.*--output_dir"):
            folder.check_record()


@pytest.mark.parametrize("path", ["file", "file/deeper/still"])
def test_file_in_place_of_the_folder_raises(path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=f"^{tmp_path}/file .*another output folder"):
        check_output_folder(tmp_path / path)
    with pytest.raises(UsageError, match=f"^{tmp_path}/file .*another output folder"):
        RunFolder(tmp_path / path, "train", {})


def test_existing_and_new_folders_are_accepted(tmp_path):
    check_output_folder(tmp_path)
    check_output_folder(tmp_path / "new" / "deeper")
    (tmp_path / "training_texts.safetensors").touch()  # is no model
    check_output_folder(tmp_path)


@pytest.mark.parametrize(
    "argv",
    [
        "pseudo-label --model={solver} --problems={problems}/test.jsonl --overwrite",
        "rerank --model={solver} --dataset={problems} --overwrite",
        "evaluate --model={solver} --dataset={problems}",
        "evaluate --model={folder} --dataset={problems}",
        "heads --model={solver} --dataset={problems}",
        "mix --solvers {solver} {solver}",
        "card --model={solver}",
        "train --solver={solver} --dataset={problems} --max_steps=1",
        "distill --teacher={solver} --dataset={problems} --max_steps=1",
        "prune --model={solver} --dataset={problems} --max_steps=1",
        "stark --teacher={solver} --dataset={problems} --max_steps=1",
        "pretrain --encoder={encoder} --corpus={problems}/train.jsonl --max_steps=1",
        f"run {EXAMPLES}/compact_math23k.yaml --budget=quick",
    ],
)
def test_commands_do_not_change_the_folder_of_another_model(argv, solver_folder, encoder, problems, tmp_path, capsys):
    folder = shutil.copytree(solver_folder, tmp_path / "model")
    before = {path: path.read_bytes() for path in folder.rglob("*")}
    words = argv.format(solver=solver_folder, folder=folder, problems=problems, encoder=encoder).split()
    assert main([*words, f"--output_dir={folder}"]) == 1
    assert str(folder) in capsys.readouterr().err
    assert {path: path.read_bytes() for path in folder.rglob("*")} == before


def test_existing_records_are_described(tmp_path):
    for name in ("run.json", "run.log", "other.txt"):
        (tmp_path / name).touch()
    assert describe_contents(tmp_path, "model", "processor").endswith(" model, processor, run.json, run.log")


@pytest.mark.parametrize(("weights", "stays"), [(b"old", True), (b"new", False)])
def test_files_of_the_old_model_stay_only_beside_equal_weights(weights, stays, tmp_path):
    """A longer training makes the re-ranker of the old weights useless; a resumed complete one changes nothing."""
    (tmp_path / "model.safetensors").write_bytes(b"old")
    (tmp_path / "plausibility.json").touch()
    with RunFolder(tmp_path, for_model=True) as folder, folder.replacing_model() as unfinished:
        (unfinished / "model.safetensors").write_bytes(weights)
        assert (tmp_path / "plausibility.json").exists()
    assert (tmp_path / "model.safetensors").read_bytes() == weights
    assert (tmp_path / "plausibility.json").exists() == stays

import re
import shutil
from pathlib import Path

import pytest
import yaml

from hf_mwp.commands.main import main
from hf_mwp.utils.run_folder import RunFolder, check_output_folder, describe_contents, last_options
from hf_mwp.utils.usage_error import UsageError


def test_two_runs_do_not_write_to_one_folder(tmp_path):
    with (
        RunFolder(tmp_path),
        pytest.raises(UsageError, match=f"{tmp_path}.*Wait"),
    ):
        RunFolder(tmp_path, "train", {})
    assert not list(tmp_path.iterdir())
    with RunFolder(tmp_path, "train", {}) as folder:
        folder.begin()


def test_of_several_processes_the_first_one_holds_it(tmp_path, monkeypatch):
    with RunFolder(tmp_path):
        monkeypatch.setenv("RANK", "1")
        with RunFolder(tmp_path):
            pass


def test_a_new_folder_to_which_nothing_was_written_is_gone(tmp_path):
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
def test_a_model_is_not_written_over(tmp_path, name):
    (tmp_path / "run_config.yaml").touch()
    with RunFolder(tmp_path) as folder:
        folder.check_unused(overwrite=False)
        (tmp_path / name).touch()
        with pytest.raises(UsageError, match=f"{name}.*--overwrite"):
            folder.check_unused(overwrite=False)
        folder.check_unused(overwrite=True)


def test_a_run_is_unfinished_until_its_metrics_are_written(tmp_path):
    with RunFolder(tmp_path, "train", {"seed": 1}) as folder:
        assert not folder.is_unfinished
        folder.begin()
        assert folder.is_unfinished
        folder.finish({})
        assert not folder.is_unfinished


def test_the_recorded_options_start_no_run_over(tmp_path):
    values = {"seed": 1, "overwrite": True, "resume": True, "resume_from_checkpoint": "a", "hub_token": "hf_secret"}
    with RunFolder(tmp_path, "train", values) as folder:
        folder.begin()
    assert yaml.safe_load((tmp_path / "run_config.yaml").read_text()) == {"seed": 1}


@pytest.mark.parametrize("content", ["", "- a", "a: ["])
def test_damaged_options_are_named(content, tmp_path):
    (tmp_path / "run_config.yaml").write_text(content)
    with pytest.raises(UsageError, match="run_config.yaml cannot be read"):
        last_options(tmp_path)


def test_the_record_of_another_command_stays(tmp_path):
    folder = RunFolder(tmp_path, "train", {"seed": 1})
    folder.begin()
    folder.finish({})
    before = (tmp_path / "run.json").read_text()
    with pytest.raises(UsageError, match="`hf-mwp train`.*`hf-mwp evaluate`.*--output_dir"):
        with RunFolder(tmp_path, "evaluate", {}) as folder:
            folder.check_record()
    assert (tmp_path / "run.json").read_text() == before
    with RunFolder(tmp_path, "train", {}) as folder:
        folder.check_record()


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", ["file", "file/deeper/still"])
def test_a_file_is_no_folder(path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match=f"^{tmp_path}/file .*another output folder"):
        check_output_folder(tmp_path / path)


def test_folders_that_are_there_or_can_be_made(tmp_path):
    check_output_folder(tmp_path)
    check_output_folder(tmp_path / "new" / "deeper")


@pytest.mark.parametrize(
    "argv",
    [
        "train --encoder=a --dataset=nowhere",
        "distill --teacher=a --dataset=nowhere",
        "pretrain --encoder=a --corpus=nowhere",
        "mix --pretrained=/no/where --distilled=/no/where",
        "evaluate --model=/no/where --dataset=nowhere",
        "pseudo-label --model=/no/where --problems=nowhere",
        "card --model=/no/where",
        f"run {EXAMPLES}/compact_math23k.yaml --budget=quick",
    ],
)
def test_each_command_looks_before_it_works(argv, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine")
    assert main([*argv.split(), f"--output_dir={path}"]) == 1
    assert re.search(f"{path} .*another output folder", capsys.readouterr().err)
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    "argv",
    [
        "pseudo-label --model={solver} --problems={problems}/test.jsonl --overwrite",
        "rerank --model={solver} --dataset={problems} --overwrite",
        "evaluate --model={solver} --dataset={problems}",
        "evaluate --model={place} --dataset={problems}",
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
def test_the_folder_of_another_model_stays_as_it_is(argv, solver_folder, encoder, problems, tmp_path, capsys):
    place = shutil.copytree(solver_folder, tmp_path / "model")
    before = {path: path.read_bytes() for path in place.rglob("*")}
    words = argv.format(solver=solver_folder, place=place, problems=problems, encoder=encoder).split()
    assert main([*words, f"--output_dir={place}"]) == 1
    assert str(place) in capsys.readouterr().err
    assert {path: path.read_bytes() for path in place.rglob("*")} == before


def test_records_and_texts_alone_are_no_model(tmp_path):
    (tmp_path / "training_texts.safetensors").touch()
    with RunFolder(tmp_path, "label", {}) as folder:
        folder.begin()


def test_only_what_is_there_is_told(tmp_path):
    for name in ("run.json", "run.log", "other.txt"):
        (tmp_path / name).touch()
    assert describe_contents(tmp_path, "model", "processor") == f"{tmp_path} has model, processor, run.json, run.log"


@pytest.mark.parametrize(("weights", "is_kept"), [(b"old", True), (b"new", False)])
def test_files_of_the_old_model_stay_only_beside_equal_weights(tmp_path, weights, is_kept):
    """A longer training makes the re-ranker of the old weights useless; a resumed complete one changes nothing."""
    (tmp_path / "model.safetensors").write_bytes(b"old")
    (tmp_path / "plausibility.json").touch()
    with RunFolder(tmp_path, for_model=True) as folder, folder.replacing_model() as unfinished:
        (unfinished / "model.safetensors").write_bytes(weights)
        assert (tmp_path / "plausibility.json").exists()
    assert (tmp_path / "model.safetensors").read_bytes() == weights
    assert (tmp_path / "plausibility.json").exists() == is_kept

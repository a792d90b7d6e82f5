from pathlib import Path

import pytest

from hf_mwp.cli.errors import CommandError
from hf_mwp.cli.main import main
from hf_mwp.cli.output_folder import check_output_folder, describe_contents


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("path", ["file", "file/deeper/still"])
def test_a_file_is_no_folder(path, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CommandError, match=f"^{tmp_path}/file is a file; choose another output folder.$"):
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
        "label --model=/no/where --problems=nowhere",
        "card --model=/no/where",
        "quickstart --encoder=/no/where --data_dir=/no/where",
        "reproduce compact-table1 --budget=quick",
        f"distill --config {EXAMPLES}/compact_math23k.yaml --budget=quick",
    ],
)
def test_each_command_looks_before_it_works(argv, tmp_path, capsys):
    path = tmp_path / "file"
    path.write_text("mine")
    assert main([*argv.split(), f"--output_dir={path}"]) == 1
    assert f"{path} is a file; choose another output folder." in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_only_what_is_there_is_told(tmp_path):
    for name in ("run.json", "run.log", "other.txt"):
        (tmp_path / name).touch()
    assert describe_contents(tmp_path, "model", "processor") == f"{tmp_path} has model, processor, run.json, run.log"

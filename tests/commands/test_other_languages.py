"""Solvers of one language and problems in another."""

import shutil

import pytest

from tests.commands.folders import read_rows, save_solver, write_rows
from tests.slow_parameters import slow_after
from tests.tiny import tiny_processor


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    """A folder with English problems."""
    folder = tmp_path_factory.mktemp("english")
    rows = []
    for number in range(2, 26):
        text = f"Ann has {number} pens and buys {number + 1}. How many?"
        rows.append({"text": text, "equation": f"{number}+{number + 1}", "answer": str(2 * number + 1)})
    for split in ("train", "valid", "test"):
        write_rows(folder / f"{split}.jsonl", rows)
    return folder


@pytest.mark.parametrize(
    ("command", "option"),
    slow_after(
        1,
        [
            ("distill", "--teacher"),
            ("prune", "--model"),
            ("stark", "--teacher"),
            ("train", "--solver"),
            ("heads", "--model"),
        ],
    ),
)
def test_solver_of_another_language_is_refused(command, option, solver_folder, english, tmp_path, error_of):
    error = error_of(command, option, solver_folder, "--dataset", english, "--output_dir", tmp_path / "run")
    assert "in Chinese" in error
    assert "in English" in error
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
def test_each_of_several_teachers_is_checked(solver_folder, english, problems, tmp_path, error_of):
    other = save_solver(tmp_path / "other", tiny_processor(max_length=64, language="en"))
    argv = ["distill", "--teacher", solver_folder, other, "--output_dir", tmp_path / "run", "--dataset"]
    assert f"{other} solves problems in" in error_of(*argv, problems)
    assert f"{solver_folder} solves problems in" in error_of(*argv, english)


@pytest.mark.slow
def test_problems_in_two_languages_are_counted(solver_folder, english, problems, tmp_path, caplog, output_of):
    data = shutil.copytree(problems, tmp_path / "data")
    rows = read_rows(data / "train.jsonl") + read_rows(english / "train.jsonl")[:3]
    write_rows(data / "train.jsonl", rows)
    argv = ["heads", "--model", solver_folder, "--dataset", data, "--num_batches=1", "--batch_size=2"]
    output_of(*argv, "--output_dir", tmp_path / "run")
    assert "solves problems in Chinese, but 3 of" in caplog.text

"""Solvers of one language and problems in another."""

import json
import shutil

import pytest

from hf_mwp.commands.main import main


@pytest.fixture(scope="module")
def english(tmp_path_factory):
    """A folder with English problems."""
    folder = tmp_path_factory.mktemp("english")
    rows = [
        {"text": f"Ann has {a} pens and buys {a + 1}. How many?", "equation": f"{a}+{a + 1}", "answer": str(2 * a + 1)}
        for a in range(2, 26)
    ]
    for part in ("train", "valid", "test"):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("command", "option"),
    [
        *(("distill", "--teacher"), ("prune", "--model"), ("stark", "--teacher"), ("train", "--solver")),
        ("heads", "--model"),
    ],
)
def test_a_solver_of_another_language_is_refused(command, option, solver_folder, english, tmp_path, capsys):
    folder = tmp_path / "run"
    argv = [command, option, str(solver_folder), "--dataset", str(english), "--output_dir", str(folder)]
    assert main(argv if command == "heads" else [*argv, "--use_cpu", "--max_steps=1"]) == 1
    error = capsys.readouterr().err
    assert "in Chinese" in error and "in English" in error
    assert not folder.exists()


def test_each_of_several_teachers_counts(solver_folder, english, problems, tmp_path, capsys):
    from tests.tiny import tiny_processor, tiny_solver

    processor = tiny_processor(max_length=64, language="en")
    other = tmp_path / "other"
    tiny_solver(processor).save_pretrained(other)
    processor.save_pretrained(other)
    argv = ["distill", "--teacher", str(solver_folder), str(other), "--use_cpu", "--output_dir", str(tmp_path / "run")]
    for data, found in ((problems, other), (english, solver_folder)):
        assert main([*argv, "--dataset", str(data), "--max_steps=1"]) == 1
        assert f"{found} solves problems in" in capsys.readouterr().err


def test_problems_in_two_languages_are_counted(solver_folder, english, problems, tmp_path, caplog):
    data = tmp_path / "data"
    shutil.copytree(problems, data)
    added = (english / "train.jsonl").read_text("utf-8").splitlines()[:3]
    with (data / "train.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in added)
    argv = ["train", "--solver", str(solver_folder), "--dataset", str(data), "--use_cpu", "--max_steps=1"]
    assert main([*argv, "--eval_strategy=no", "--test=false", "--output_dir", str(tmp_path / "run")]) == 0
    assert "solves problems in Chinese, but 3 of" in caplog.text

"""The example script that measures how well solvers read the question."""

import sys
from pathlib import Path

import pytest

from hf_mwp.solver.data import load_mwp_dataset
from tests.examples.scripts import load_script


DATA = Path(__file__).parents[1] / "fixtures"


@pytest.fixture(scope="module")
def script():
    return load_script("question_accuracy.py")


@pytest.mark.slow
def test_chinese_problems_are_those_of_the_validation_splits(script):
    sets = script.chinese_sets(DATA)
    math23k = load_mwp_dataset("math23k", DATA)["validation"]
    unbiased = load_mwp_dataset("unbiasedmwp", DATA)["validation"]
    assert [problem.text for problem in sets["Math23k"]] == math23k["text"]
    assert len(sets["UnbiasedMWP, with an operation"]) + len(sets["answer in the text"]) == len(unbiased)
    for problem in sets["one operation"]:
        assert problem.expression.num_operators == 1
    assert 0 < len(sets["reversed"]) <= len(math23k)
    # The problems of these few texts are too different to lend each other numbers.
    assert not sets["irrelevant numbers"]


@pytest.mark.slow
def test_english_problems_are_those_of_the_validation_splits_and_asdiv(script):
    sets = script.english_sets(DATA)
    asdiv = load_mwp_dataset("asdiv_a", DATA)
    assert [problem.text for problem in sets["ASDiv-A"]] == [*asdiv["train"]["text"], *asdiv["test"]["text"]]
    assert sets["other forms of numbers"]
    assert len(sets["prices"]) == 300


def test_each_solver_has_a_row(script, solver_folder, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["question_accuracy.py", str(solver_folder), f"--data_dir={DATA}"])
    script.main()
    output = capsys.readouterr().out
    assert "irrelevant numbers" in output
    assert solver_folder.name in output

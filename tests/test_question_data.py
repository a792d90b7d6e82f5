"""The example script that makes problems of Math23k and UnbiasedMWP."""

import importlib.util
import re
import sys
from pathlib import Path

import pytest

from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


ROOT = Path(__file__).parents[1]


@pytest.fixture
def make(tmp_path, monkeypatch):
    spec = importlib.util.spec_from_file_location("question_data", ROOT / "examples" / "question_data.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def make(name, seed):
        options = ["--data_dir", str(ROOT / "tests" / "fixtures"), f"--seed={seed}"]
        monkeypatch.setattr(sys, "argv", ["question_data.py", str(tmp_path / name), *options])
        module.main()
        return load_mwp_dataset(tmp_path / name)

    return make


def test_problems_depend_on_the_seed_and_exclude_held_out_ones(make):
    first = make("first", 0)
    other_seed = make("other", 1)
    assert first["train"]["text"] == make("second", 0)["train"]["text"] != other_seed["train"]["text"]
    # Every second question for a number of the text is taken.
    num_with_question = 0
    for data in (first, other_seed):
        ids = data["train"]["id"]
        names = {re.sub(r"-[DR]\d+$", "", name) for name in ids}
        assert {"1", "2", "3", "unb-2", "unb-3"} <= names and not {"unb-4", "unb-5"} & names
        assert data["validation"]["id"] == ["4"]
        for row in data["train"]:
            assert problem_from_row(row).agrees()
        num_with_question += any(name.startswith("unb-1") for name in ids)
    assert num_with_question == 1


def test_math23k_problems_are_whole_once_and_reversed_at_most_once(make):
    ids = make("first", 0)["train"]["id"]
    from_math23k = [name for name in ids if name.partition("-")[0] in "123"]
    assert sum("-N" not in name for name in from_math23k) == 3
    reversed_problems = [name.partition("-")[0] for name in from_math23k if "-N" in name]
    assert reversed_problems and len(reversed_problems) == len(set(reversed_problems))
    # Those of UnbiasedMWP are there in both forms.
    assert "unb-2" in ids and any(name.startswith("unb-2-") for name in ids)

"""The example script that makes problems of Math23k and UnbiasedMWP."""

import importlib.util
import re
import sys
from pathlib import Path

from hf_mwp.solver.data import load_mwp_dataset, problem_from_row


ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "question_data.py"


def make(folder, seed, monkeypatch):
    spec = importlib.util.spec_from_file_location("question_data", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    data = ROOT / "tests" / "fixtures"
    monkeypatch.setattr(sys, "argv", ["question_data.py", str(folder), "--data_dir", str(data), f"--seed={seed}"])
    module.main()
    return load_mwp_dataset(folder)


def test_its_problems_are_sound_and_held_out_ones_are_not_among_them(tmp_path, monkeypatch):
    made = [make(tmp_path / str(seed), seed, monkeypatch) for seed in (0, 0, 1)]
    assert made[0]["train"]["text"] == made[1]["train"]["text"] != made[2]["train"]["text"]
    for data in made:
        names = [re.sub(r"-[DR]\d+$", "", name) for name in data["train"]["id"]]
        assert {"1", "2", "3", "unb-2", "unb-3"} <= set(names) and not {"unb-4", "unb-5"} & set(names)
        assert data["validation"]["id"] == ["4"]
        assert all(problem_from_row(row).agrees() for row in data["train"])
    # Each of Math23k's problems is there once, with or without distractors, and at most once reversed; UnbiasedMWP's
    # are there in both forms and reversed.
    names = made[0]["train"]["id"]
    from_math23k = [name for name in names if name.partition("-")[0] in "123"]
    assert sum("-N" not in name for name in from_math23k) == 3
    reversed_ones = [name.partition("-")[0] for name in from_math23k if "-N" in name]
    assert reversed_ones and len(reversed_ones) == len(set(reversed_ones))
    assert "unb-2" in names and any(name.startswith("unb-2-") for name in names)
    # Of questions for a number of the text every second one.
    assert sorted(sum(name.startswith("unb-1") for name in each["train"]["id"]) > 0 for each in made[1:]) == [
        False,
        True,
    ]

"""The example script that writes generated training problems."""

import sys

from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from tests.examples.scripts import load_script


def test_file_is_training_data(tmp_path, monkeypatch):
    file = tmp_path / "generated.jsonl"
    arguments = [str(file), "--language=zh", "--remainders=20", "--clock_times=10", "--stories=10"]
    monkeypatch.setattr(sys, "argv", ["generated_problems.py", *arguments])
    load_script("generated_problems.py").main()
    rows = load_mwp_dataset(str(file))["train"]
    ids = [row["id"] for row in rows]
    assert {name.rsplit("-", 1)[0] for name in ids} == {"remainders", "clock-times", "stories"}
    assert len(ids) > 20
    assert all(problem_from_row(row, number_reading="people").agrees(1e-9) for row in rows)

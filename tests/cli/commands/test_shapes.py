import re

import pytest

from hf_mwp.building import student_shape
from hf_mwp.cli.main import main


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(student_shape, "LAYERS", (1, 2))
    monkeypatch.setattr(student_shape, "WIDTHS", {8: (16, 2), 16: (24, 2)})


def test_students_of_a_solver_are_measured(solver_folder, capsys):
    assert main(["shapes", "--encoder", str(solver_folder), "--target_mb", "1"]) == 0
    lines = [re.split(r" *│ *", line.strip("│ \n")) for line in capsys.readouterr().out.splitlines() if "│" in line]
    # Layers, width, heads, neurons, parameters, megabytes, milliseconds.
    assert len(lines) == 8 and all(float(line[6]) > 0 for line in lines)
    assert [line[:4] for line in lines if line[-1] == "chosen"] == [["2", "16", "2", "24"]]


def test_nothing_is_chosen_without_a_target(solver_folder, capsys):
    assert main(["shapes", "--encoder", str(solver_folder)]) == 0
    assert "chosen" not in capsys.readouterr().out
    assert main(["shapes", "--encoder", str(solver_folder), "--target_mb", "0.0001"]) == 1
    assert "The smallest is 1 x 8, 2 heads, 8 neurons" in capsys.readouterr().err

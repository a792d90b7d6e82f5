"""The table and the Pareto picture of a family of solvers."""

import json
import shutil

import pytest

from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.solver.models import MwpSolver
from tests.examples.scripts import load_script


@pytest.fixture(scope="module")
def family():
    return load_script("results/family.py")


def model(name, milliseconds, right):
    costs = {"milliseconds": milliseconds, "megabytes": 2 * milliseconds, "parameters": 10_300_000}
    return {"name": name, **costs, "right": right, "problems": 100}


RECORD = {"dataset": "math23k", "num_beams": 1, "models": [model("small", 4, 64), model("base", 8, 70)]}


def test_dominated_models_are_not_on_the_front(family):
    models = [*RECORD["models"], model("worse", 9, 70), model("also small", 4, 60)]
    assert [family.is_dominated(each, models, "milliseconds") for each in models] == [False, False, True, True]
    assert not family.is_dominated(models[0], [models[0], model("twin", 4, 64)], "megabytes")


def test_table_and_picture_are_made_of_a_record(family, tmp_path):
    (tmp_path / "record.json").write_text(json.dumps(RECORD), "utf-8")
    assert family.main(["--from_results", str(tmp_path / "record.json"), "--output_dir", str(tmp_path)]) == 0
    # The standard error of 64 of 100 is 4.8 points.
    assert "| small | 10.3 | 8.0 | 4.0 | 64.0 ± 4.8 |" in (tmp_path / "family.md").read_text("utf-8")
    assert (tmp_path / "family.png").stat().st_size > 10_000


def test_the_papers_figures_are_those_of_its_table(family):
    figures = family.paper_figures("math23k")
    assert figures[0] == ("BERT (teacher), 12 x 768", 109, 84.07)
    assert figures[-1] == ("compact model, 3 x 312", 10.3, 80.23)
    assert family.paper_figures("asdiv_a") == []


def test_folders_are_measured_side_by_side(family, solver_folder, problems, tmp_path, capsys):
    exported = tmp_path / "int8"
    report = export_solver(ExportArguments(str(solver_folder), str(exported), quantize="int8"))
    folders = [f"whole={shutil.copytree(solver_folder, tmp_path / 'whole')}", f"int8={exported}"]
    argv = ["--dataset", str(problems), "--problems", "3", "--num_beams", "1", "--output_dir", str(tmp_path)]
    assert family.main([*folders, *argv]) == 0
    whole, int8 = json.loads((tmp_path / "family.json").read_text("utf-8"))["models"]
    count = sum(each.numel() for each in MwpSolver.from_pretrained(solver_folder).parameters())
    assert whole["parameters"] == int8["parameters"] == count
    assert int8["megabytes"] <= report.megabytes < whole["megabytes"]
    assert whole["problems"] == 3 and whole["milliseconds"] > 0 and 0 <= int8["right"] <= 3
    assert "| int8 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        family.main(["--output_dir", str(tmp_path)])

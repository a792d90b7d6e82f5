"""The table and the Pareto picture of a family of solvers."""

import json
import shutil

import pytest

from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.solver.metrics import count_parameters
from hf_mwp.solver.models import MwpSolver
from tests.examples.scripts import load_script


@pytest.fixture(scope="module")
def family():
    return load_script("results/family.py")


def model(name, milliseconds, right):
    costs = {"milliseconds": milliseconds, "megabytes": 2 * milliseconds, "parameters": 10_300_000}
    return {"name": name, "right": right, "problems": 100, **costs}


MODELS = [model("small", 4, 64), model("base", 8, 70)]


@pytest.mark.parametrize(
    ("milliseconds", "right", "is_dominated"), [(9, 70, True), (4, 60, True), (4, 64, False), (9, 71, False)]
)
def test_model_is_dominated_by_a_cheaper_or_better_one(family, milliseconds, right, is_dominated):
    candidate = model("candidate", milliseconds, right)
    for cost in ("milliseconds", "megabytes"):
        assert family.is_dominated(candidate, [*MODELS, candidate], cost) == is_dominated


def test_table_and_picture_are_made_of_a_record(family, tmp_path):
    record = {"dataset": "math23k", "num_beams": 1, "models": MODELS}
    (tmp_path / "record.json").write_text(json.dumps(record), "utf-8")
    assert family.main(["--from_results", str(tmp_path / "record.json"), "--output_dir", str(tmp_path)]) == 0
    # The standard error of 64 of 100 is 4.8 points.
    assert "| small | 10.3 | 8.0 | 4.0 | 64.0 ± 4.8 |" in (tmp_path / "family.md").read_text("utf-8")
    assert (tmp_path / "family.png").stat().st_size > 10_000


def test_figures_of_the_paper_are_those_of_its_table(family):
    figures = family.paper_figures("math23k")
    assert figures[0] == ("BERT (teacher), 12 x 768", 109, 84.07)
    assert figures[-1] == ("compact model, 3 x 312", 10.3, 80.23)
    assert family.paper_figures("asdiv_a") == []


@pytest.mark.slow
def test_folders_are_measured_side_by_side(family, solver_folder, problems, tmp_path, capsys):
    exported = tmp_path / "int8"
    report = export_solver(ExportArguments(str(solver_folder), str(exported), quantize="int8"))
    folders = [f"whole={shutil.copytree(solver_folder, tmp_path / 'whole')}", f"int8={exported}"]
    argv = ["--dataset", str(problems), "--problems", "3", "--num_beams", "1", "--output_dir", str(tmp_path)]
    assert family.main([*folders, *argv]) == 0
    whole, int8 = json.loads((tmp_path / "family.json").read_text("utf-8"))["models"]
    num_parameters = count_parameters(MwpSolver.from_pretrained(solver_folder))
    assert whole["parameters"] == int8["parameters"] == num_parameters
    assert int8["megabytes"] <= report.megabytes < whole["megabytes"]
    assert whole["problems"] == 3
    assert whole["milliseconds"] > 0
    assert 0 <= int8["right"] <= 3
    assert "| int8 |" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        family.main(["--output_dir", str(tmp_path)])

import re
import shutil

import pytest
from transformers import pipeline

from hf_mwp.commands.main import main
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import mark_as_killed, read_json


SMALL = ["--use_cpu", "--max_steps=1", "--num_pruning_steps=1", "--calibration_examples=8"]
RATIOS = ["--ratios", "0.25", "0.5"]


@pytest.fixture(scope="module")
def argv(problems, solver_folder):
    return ["prune", "--model", str(solver_folder), "--dataset", str(problems), *SMALL]


@pytest.fixture(scope="module")
def finished(argv, tmp_path_factory):
    """A run folder of `hf-mwp prune` with two generations."""
    folder = tmp_path_factory.mktemp("prune") / "run"
    assert main([*argv, *RATIOS, "--output_dir", str(folder)]) == 0
    return folder


@pytest.fixture
def run(finished, tmp_path):
    """A copy of the run folder."""
    return shutil.copytree(finished, tmp_path / "run")


def times_of_generations(folder):
    """When the models of the generations were written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("generations/*/model.safetensors")}


def num_heads(folder):
    return sum(layer.num_heads for layer in layer_parts(MwpSolver.from_pretrained(folder)))


def test_pruned_solver_has_fewer_heads(finished, solver_folder):
    assert (num_heads(solver_folder), num_heads(finished)) == (4, 2)
    solve = pipeline("math-word-problem", model=str(finished), device="cpu")
    assert solve("小明有4个苹果，又买了2个")[0]["numbers"]


def test_each_generation_is_measured(finished):
    metrics = read_json(finished / "metrics.json")
    assert [model["ratio"] for model in metrics["models"]] == [0.0, 0.25, 0.5]
    sizes = [model["parameters"] for model in metrics["models"]]
    assert sizes[0] > sizes[1] > sizes[2]
    assert metrics["saved"]["parameters"] == pytest.approx(1 - sizes[2] / sizes[0])
    for model in metrics["models"]:
        assert model["test"]["reports"]["all problems"]["num_problems"] == 9
        assert "validation" in model
    assert metrics["test"] == metrics["models"][2]["test"]
    for picture in ("accuracy_latency.png", "heads_1.png", "heads_2.png"):
        assert (finished / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_killed_run_trains_no_finished_generation(run, argv, output_of, error_of):
    argv = [*argv, *RATIOS, "--output_dir", run]
    assert re.search(r"config\.json.*--overwrite", error_of(*argv))
    before = times_of_generations(run)
    mark_as_killed(run)
    assert "step" not in output_of(*argv)
    assert (run / "metrics.json").is_file()
    assert times_of_generations(run) == before


@pytest.mark.slow
def test_generations_that_are_impossible_or_too_bad_are_named(run, argv, error_of):
    argv = [*argv, "--output_dir", run, "--overwrite"]
    assert "--least_metric 1.1" in error_of(*argv, "--ratios", "0.25", "--least_metric", "1.1")
    before = (run / "run.json").read_bytes()
    assert re.search(r"`ratios`.*\[0\.5, 0\.25\]", error_of(*argv, "--ratios", "0.5", "0.25"))
    assert re.search("heads.* layer", error_of(*argv, "--ratios", "0.95"))
    assert re.search("--max_ratio.*--ratios.*Pass one", error_of(*argv, "--max_ratio", "0.25", "--ratios", "0.5"))
    assert "`max_ratio` must be at least 0 and below 1" in error_of(*argv, "--max_ratio", "1")
    assert "`model`" in error_of("prune")
    assert (run / "run.json").read_bytes() == before


@pytest.mark.slow
def test_max_ratio_is_a_single_generation(finished, argv, tmp_path, output_of):
    folder = tmp_path / "single"
    # The first generation of the other run is reused.
    shutil.copytree(finished / "generations", folder / "generations")
    before = times_of_generations(folder)
    output_of(*argv, "--output_dir", folder, "--max_ratio", "0.25", "--test_num_beams", "2")
    models = read_json(folder / "metrics.json")["models"]
    assert [model["ratio"] for model in models] == [0.0, 0.25]
    assert [model["test"]["num_beams"] for model in models] == [2, 2]
    expected = read_json(finished / "metrics.json")["models"][:2]
    assert [model["heads"] for model in models] == [model["heads"] for model in expected]
    assert len(before) == 2
    assert times_of_generations(folder) == before

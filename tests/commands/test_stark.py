import re
import shutil

import pytest

from hf_mwp.commands.main import main
from hf_mwp.solver.models import MwpSolver
from tests.commands.folders import mark_as_killed, read_json
from tests.slow_parameters import slow_after


@pytest.fixture(scope="module")
def argv(problems, solver_folder):
    argv = ["stark", "--teacher", str(solver_folder), "--dataset", str(problems), "--student_layers=1", "--use_cpu"]
    return [*argv, "--max_steps=1", "--per_device_train_batch_size=8", "--scores=random"]


@pytest.fixture(scope="module")
def finished(argv, tmp_path_factory):
    """A run folder of `hf-mwp stark` with one sparsity by random scores."""
    folder = tmp_path_factory.mktemp("stark") / "run"
    assert main([*argv, "--sparsities=0.5", "--output_dir", str(folder)]) == 0
    return folder


def test_each_student_is_measured(finished):
    metrics = read_json(finished / "metrics.json")
    assert [model["sparsity"] for model in metrics["models"]] == [0.0, 0.5]
    assert metrics["chosen_sparsity"] == 0.5
    for model in (*metrics["models"], metrics["teacher"]):
        outcomes = model["test"]["outcomes"]
        assert model["test"]["reports"]["all problems"]["answer_accuracy"] == outcomes.count("1") / len(outcomes)
        assert "validation" in model
    assert metrics["chosen_by"] == "eval_answer_accuracy"
    assert metrics["scores"] == "random"
    assert (finished / "sparsities.png").is_file()
    assert not (finished / "densities.png").exists()
    assert MwpSolver.from_pretrained(finished).config.num_hidden_layers == 1
    assert read_json(finished / "data.json")["used"]["test"] == 9


def times_of_stages(folder):
    """When the models of the stages were written."""
    return {path.parent.name: path.stat().st_mtime_ns for path in folder.glob("stages/*/model.safetensors")}


@pytest.mark.slow
def test_killed_run_trains_no_finished_student(finished, argv, tmp_path, output_of, error_of):
    run = shutil.copytree(finished, tmp_path / "run")
    argv = [*argv, "--sparsities=0.5", "--output_dir", run]
    assert re.search(r"config\.json.*--overwrite", error_of(*argv))
    before = times_of_stages(run)
    assert len(before) == 2
    mark_as_killed(run)
    output_of(*argv)
    assert (run / "metrics.json").is_file()
    assert times_of_stages(run) == before


@pytest.mark.parametrize(
    ("options", "message"),
    slow_after(
        2,
        [
            (["--sparsities", "1.2"], r"sparsity.* 1\.2"),
            (["--sparsities", "0.99"], r"0\.99 .*heads"),
            (["--auto_sparsity"], "--scores random"),
            (["--push_to_hub"], "--push_to_hub.*`hf-mwp publish`"),
            (["--student_sparsity", "0.5"], "`student_sparsity`.*`student_init=cut`"),
        ],
    ),
)
def test_wrong_options_are_named(options, message, argv, tmp_path, error_of):
    assert re.search(message, error_of(*argv, "--output_dir", tmp_path / "run", *options))
    assert not (tmp_path / "run").exists()

import json
import re

import pytest

from hf_mwp.commands.main import main
from hf_mwp.solver.models import MwpSolver


@pytest.fixture(scope="module")
def stark(problems, solver_folder, tmp_path_factory):
    """A run folder of `hf-mwp stark` with one sparsity by random scores, and its arguments."""
    folder = tmp_path_factory.mktemp("stark") / "run"
    argv = ["stark", "--teacher", str(solver_folder), "--dataset", str(problems), "--output_dir", str(folder)]
    argv += ["--student_layers=1", "--use_cpu", "--max_steps=2", "--per_device_train_batch_size=8", "--scores=random"]
    assert main([*argv, "--sparsities", "0.5"]) == 0
    return folder, argv


def test_figures_of_each_student(stark):
    folder, _ = stark
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [model["sparsity"] for model in metrics["models"]] == [0.0, 0.5] and metrics["chosen_sparsity"] == 0.5
    for model in (*metrics["models"], metrics["teacher"]):
        share = model["test"]["outcomes"].count("1") / len(model["test"]["outcomes"])
        assert share == model["test"]["reports"]["all problems"]["answer_accuracy"] and "validation" in model
    assert metrics["chosen_by"] == "eval_answer_accuracy" and metrics["scores"] == "random"
    assert (folder / "sparsities.png").is_file() and not (folder / "densities.png").exists()
    assert MwpSolver.from_pretrained(folder).config.num_hidden_layers == 1
    assert json.loads((folder / "data.json").read_text())["used"]["test"] == 9


def test_started_again_it_trains_nothing(stark, capsys):
    folder, argv = stark
    assert main([*argv, "--sparsities", "0.5"]) == 1
    assert re.search(r"config\.json.*--overwrite", capsys.readouterr().err)
    before = {path: path.stat().st_mtime_ns for path in (folder / "stages").glob("*/model.safetensors")}
    # As if it had been killed after the model was saved.
    (folder / "metrics.json").unlink()
    record = json.loads((folder / "run.json").read_text())
    del record["wall_seconds"]
    (folder / "run.json").write_text(json.dumps(record))
    assert main([*argv, "--sparsities", "0.5"]) == 0
    assert (folder / "metrics.json").is_file()
    assert len(before) == 2 and {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--sparsities", "1.2"], r"sparsity.* 1\.2"),
        (["--sparsities", "0.99"], r"0\.99 .*heads"),
        (["--auto_sparsity"], "--scores random"),
        (["--student_sparsity", "0.5"], "`student_sparsity`.*`student_init=cut`"),
    ],
)
def test_what_cannot_be(options, message, stark, tmp_path, capsys):
    argv = list(stark[1])
    argv[argv.index("--output_dir") + 1] = str(tmp_path / "run")
    assert main([*argv, *options]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "run").exists()


def test_a_teacher_must_be_given(capsys):
    assert main(["stark"]) == 1
    assert "`teacher`" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("recipe", "title"), [("stark_rte", "sparse teacher, RTE"), ("stark_glue", "sparse teacher, GLUE")]
)
def test_a_recipe_is_run(recipe, title, tmp_path, repository, monkeypatch, capsys):
    monkeypatch.chdir(repository)
    argv = ["run", f"examples/{recipe}.yaml", "--task", "mrpc", "--budget", "quick", "--dry_run"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "hf-mwp stark" in printed and title in printed and not any(tmp_path.iterdir())

import json
import re
import shutil

import pytest
from transformers import pipeline

from hf_mwp.commands.main import main
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.solver.models import MwpSolver


SMALL = [
    "--use_cpu",
    "--max_steps=2",
    "--num_pruning_steps=1",
    "--calibration_examples=8",
    "--per_device_train_batch_size=8",
]


@pytest.fixture(scope="module")
def pruned(problems, solver_folder, tmp_path_factory):
    """A run folder of `hf-mwp prune` with two generations, and its arguments."""
    folder = tmp_path_factory.mktemp("prune") / "run"
    argv = ["prune", "--model", str(solver_folder), "--dataset", str(problems), "--output_dir", str(folder), *SMALL]
    assert main([*argv, "--ratios", "0.25", "0.5"]) == 0
    return folder, argv


def test_the_folder_is_a_solver_with_fewer_heads(pruned, solver_folder):
    folder, _ = pruned
    before = sum(parts.num_heads for parts in layer_parts(MwpSolver.from_pretrained(solver_folder)))
    after = sum(parts.num_heads for parts in layer_parts(MwpSolver.from_pretrained(folder)))
    assert after == before - before // 2
    assert pipeline("math-word-problem", model=str(folder), device="cpu")("小明有4个苹果，又买了2个")[0]["numbers"]


def test_figures_of_each_generation(pruned):
    folder, _ = pruned
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [model["ratio"] for model in metrics["models"]] == [0.0, 0.25, 0.5]
    sizes = [model["parameters"] for model in metrics["models"]]
    assert sizes[0] > sizes[1] > sizes[2]
    assert metrics["saved"]["parameters"] == pytest.approx(1 - sizes[2] / sizes[0])
    for model in metrics["models"]:
        assert model["test"]["reports"]["all problems"]["num_problems"] == 9 and "validation" in model
        share = model["test"]["outcomes"].count("1") / len(model["test"]["outcomes"])
        assert share == model["test"]["reports"]["all problems"]["answer_accuracy"]
    assert metrics["test"] == metrics["models"][2]["test"]
    for picture in ("accuracy_latency.png", "heads_1.png", "heads_2.png"):
        assert (folder / picture).read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "data.json").read_text())["used"]["test"] == 9


def test_started_again_it_trains_nothing(pruned, capsys):
    folder, argv = pruned
    assert main([*argv, "--ratios", "0.25", "0.5"]) == 1
    assert re.search(r"config\.json.*--overwrite", capsys.readouterr().err)
    before = {path: path.stat().st_mtime_ns for path in (folder / "generations").glob("*/model.safetensors")}
    # As if it had been killed after the model was saved.
    (folder / "metrics.json").unlink()
    record = json.loads((folder / "run.json").read_text())
    del record["wall_seconds"]
    (folder / "run.json").write_text(json.dumps(record))
    assert main([*argv, "--ratios", "0.25", "0.5"]) == 0
    assert (folder / "metrics.json").is_file()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert "step" not in capsys.readouterr().out
    # The same generations with a different evaluation.
    assert main([*argv, "--ratios", "0.25", "0.5", "--overwrite", "--test_num_beams=2"]) == 0
    metrics = json.loads((folder / "metrics.json").read_text())
    assert [model["test"]["num_beams"] for model in metrics["models"]] == [2, 2, 2]
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_too_bad_and_wrong(pruned, tmp_path, capsys):
    folder, argv = pruned
    argv = ["--output_dir" if word == "--output_dir" else word for word in argv]
    argv[argv.index("--output_dir") + 1] = str(tmp_path / "bad")
    shutil.copytree(folder / "generations", tmp_path / "bad" / "generations")
    assert main([*argv, "--ratios", "0.25", "--least_metric", "1.1"]) == 1
    assert "--least_metric 1.1" in capsys.readouterr().err
    assert main([*argv, "--ratios", "0.5", "0.25"]) == 1
    assert re.search(r"`ratios`.*\[0\.5, 0\.25\]", capsys.readouterr().err)
    # The folder of a finished run stays as it is.
    record = (folder / "run.json").read_bytes()
    assert main([*pruned[1], "--ratios", "0.95", "--overwrite"]) == 1
    assert re.search("heads.* layer", capsys.readouterr().err)
    assert (folder / "run.json").read_bytes() == record
    assert main(["prune"]) == 1
    assert "`model`" in capsys.readouterr().err


def test_max_ratio_is_a_single_generation(pruned, tmp_path, capsys):
    folder, argv = pruned
    argv = [*argv]
    argv[argv.index("--output_dir") + 1] = str(tmp_path / "single")
    # The first generation of `--ratios 0.25 0.5` is reused.
    shutil.copytree(folder / "generations", tmp_path / "single" / "generations")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "single").glob("*/*/model.safetensors")}
    assert main([*argv, "--max_ratio", "0.25"]) == 0
    models = json.loads((tmp_path / "single" / "metrics.json").read_text())["models"]
    expected = json.loads((folder / "metrics.json").read_text())["models"][:2]
    assert [model["ratio"] for model in models] == [0.0, 0.25]
    assert [model["heads"] for model in models] == [model["heads"] for model in expected]
    assert len(before) == 2 and {path: path.stat().st_mtime_ns for path in before} == before
    # The options of the run can be read again.
    assert main(["prune", "--config", str(tmp_path / "single" / "run_config.yaml"), "--overwrite"]) == 0
    capsys.readouterr()
    assert main([*argv, "--max_ratio", "0.25", "--ratios", "0.5"]) == 1
    assert re.search("--max_ratio.*--ratios.*Pass one", capsys.readouterr().err)
    assert main([*argv, "--max_ratio", "1"]) == 1
    assert "`max_ratio` must be at least 0 and below 1" in capsys.readouterr().err

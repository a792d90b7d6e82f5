import contextlib
import importlib.util
import io
import json
import re

import pytest
from transformers import pipeline

import hf_mwp
from hf_mwp.utils.usage_error import UsageError
from tests.examples.scripts import load_script


SCRIPT = load_script("quickstart.py")


@pytest.fixture(scope="module")
def quickstart(encoder, tmp_path_factory):
    """Output folder and printed text of a quickstart with a tiny encoder and few problems."""
    data, report = hf_mwp.load_mwp_dataset("asdiv_a", fold=0, return_report=True)
    few = {"train": data["train"].select(range(96)), "test": data["test"].select(range(30))}
    folder = tmp_path_factory.mktemp("quickstart") / "out"
    output = io.StringIO()
    argv = ["--fast", "--encoder", str(encoder), "--output_dir", str(folder), "--student_layers=1"]
    with pytest.MonkeyPatch.context() as monkeypatch, contextlib.redirect_stdout(output):
        monkeypatch.setattr(hf_mwp, "load_mwp_dataset", lambda *args, **kwargs: (few, report))
        SCRIPT.main(argv)
    return folder, output.getvalue()


def test_table_and_trees_are_printed(quickstart):
    _, output = quickstart
    for text in ("teacher", "student", "random student", "kept %", "ms a problem", "five_fold, fold 0", "Done in"):
        assert text in output
    assert re.search(r"20 beams.*\d % right instead of \d+\.\d %, [1-9]\d* answers", " ".join(output.split()))
    # Five problems at random, and the first one that re-ranking changes.
    assert len(re.findall(r"^  (?:right|wrong \()", output, re.MULTILINE)) == 6
    assert "  instead of " in output


def test_metrics_and_run_are_recorded(quickstart):
    folder, _ = quickstart
    metrics = json.loads((folder / "metrics.json").read_text())
    assert metrics["test"].keys() == {"teacher", "student", "random student"}
    for figures in metrics["test"].values():
        assert figures["num_problems"] == 30
        assert min(figures["milliseconds"], figures["flops"]) > 0
        assert figures["reports"]["all problems"]["answer_accuracy"] == figures["answer_accuracy"]
    assert 0 <= metrics["test"]["student"]["answer_accuracy_reranked"] <= 1
    assert metrics["test"]["teacher"]["layers"] == 2
    assert metrics["test"]["student"]["layers"] == 1
    record = json.loads((folder / "run.json").read_text())
    assert record["command"] == "examples/quickstart.py"
    assert record["libraries"]["torch"]
    assert record["options"]["teacher_epochs"] == 1
    assert (folder / "learning_curve.png").exists()


@pytest.mark.parametrize("name", ["teacher", "student"])
def test_saved_solver_is_loaded(quickstart, name):
    folder, _ = quickstart
    solver = pipeline("math-word-problem", model=str(folder / name), device="cpu")
    (result,) = solver("Tom has 4 apples and 2 pears.")
    assert result["numbers"] == ["4", "2"]


def test_only_the_folder_of_an_earlier_quickstart_is_replaced(quickstart, tmp_path):
    folder, _ = quickstart
    SCRIPT.check_folder(folder)
    (tmp_path / "thesis.txt").write_text("mine")
    (folder / "student" / "run.json").write_text("{}")
    for path in (tmp_path, tmp_path / "thesis.txt", folder):
        with pytest.raises(UsageError, match=f"{path}.*--output_dir"):
            SCRIPT.main(["--output_dir", str(path)])
    assert (tmp_path / "thesis.txt").read_text() == "mine"


@pytest.mark.slow
def test_missing_package_of_the_encoder_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"hf-mwp\[demo\]"):
        SCRIPT.main(["--output_dir", str(tmp_path / "out")])

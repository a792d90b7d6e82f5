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
def shown(encoder, tmp_path_factory):
    """Output folder and printed text of a quickstart with a tiny encoder."""
    folder = tmp_path_factory.mktemp("quickstart") / "out"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        SCRIPT.main(["--fast", "--encoder", str(encoder), "--output_dir", str(folder), "--student_layers=1"])
    return folder, text.getvalue()


def test_table_and_trees(shown):
    _, text = shown
    for part in ("teacher", "student", "random student", "kept %", "ms a problem", "five_fold, fold 0", "Done in"):
        assert part in text
    assert re.search(r"20 beams.*\d % right instead of \d+\.\d %, [1-9]\d* answers", " ".join(text.split()))
    # Five problems at random, and the first one that re-ranking changes.
    assert len(re.findall(r"^  (?:right|wrong \()", text, re.MULTILINE)) == 6
    assert text.count("  instead of ") >= 1


def test_figures(shown):
    folder, _ = shown
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics["test"]) == {"teacher", "student", "random student"}
    for figures in metrics["test"].values():
        assert figures["num_problems"] == 60 and figures["milliseconds"] > 0 and figures["flops"] > 0
        assert figures["reports"]["all problems"]["answer_accuracy"] == figures["answer_accuracy"]
    assert 0 <= metrics["test"]["student"]["answer_accuracy_reranked"] <= 1
    assert metrics["test"]["teacher"]["layers"] == 2 and metrics["test"]["student"]["layers"] == 1
    assert metrics["data"]["splits"]["test"]["overlap"] == 0
    record = json.loads((folder / "run.json").read_text())
    assert record["command"] == "examples/quickstart.py" and record["libraries"]["torch"]
    assert record["options"]["seed"] == 42 and record["options"]["teacher_epochs"] == 1
    assert (folder / "learning_curve.png").exists()


def test_folders_load(shown):
    folder, _ = shown
    for name in ("teacher", "student"):
        (result,) = pipeline("math-word-problem", model=str(folder / name), device="cpu")(
            "Tom has 4 apples and 2 pears."
        )
        assert result["numbers"] == ["4", "2"]


def test_an_earlier_quickstart_is_replaced_and_nothing_else(shown, encoder, tmp_path, monkeypatch):
    folder, _ = shown
    data, report = hf_mwp.load_mwp_dataset("asdiv_a", fold=0, return_report=True)
    few = {"train": data["train"].select(range(32)), "test": data["test"].select(range(4))}
    monkeypatch.setattr(hf_mwp, "load_mwp_dataset", lambda *args, **kwargs: (few, report))
    argv = ["--no-baseline", "--encoder", str(encoder), "--student_layers=1"]
    argv += ["--teacher_epochs=1", "--student_epochs=1"]
    SCRIPT.main([*argv, "--output_dir", str(folder)])
    assert set(json.loads((folder / "metrics.json").read_text())["test"]) == {"teacher", "student"}
    (tmp_path / "thesis.txt").write_text("mine")
    (folder / "student" / "run.json").write_text("{}")
    for place in (tmp_path, tmp_path / "thesis.txt", folder):
        with pytest.raises(UsageError, match=f"{place}.*--output_dir"):
            SCRIPT.main([*argv, "--output_dir", str(place)])
    assert (tmp_path / "thesis.txt").read_text() == "mine"


def test_without_the_package_the_error_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"^[^\n]*pip install 'hf-mwp\[demo\]'[^\n]*$"):
        SCRIPT.main(["--output_dir", str(tmp_path / "out")])

import contextlib
import io
import json
import re

import pytest
from transformers import pipeline

from hf_mwp.cli.main import main


@pytest.fixture(scope="module")
def shown(encoder, tmp_path_factory):
    """Output folder and printed text of a quickstart with a tiny encoder."""
    folder = tmp_path_factory.mktemp("quickstart") / "out"
    text = io.StringIO()
    argv = ["quickstart", "--fast", "--encoder", str(encoder), "--output_dir", str(folder), "--student_layers=1"]
    with contextlib.redirect_stdout(text):
        assert main(argv) == 0
    return folder, text.getvalue()


def test_table_and_trees(shown):
    _, text = shown
    for part in ("teacher", "student", "random student", "kept %", "ms a problem", "five_fold, fold 0", "Done in"):
        assert part in text
    solved, _, reranked = text.partition("The student once more, with 20 beams whose answers are ranked")
    assert len(re.findall(r"^  (?:right|wrong \()", solved, re.MULTILINE)) == 5
    assert re.search(r"\d % right in place of \d+\.\d %, [1-9]\d* answers are others", " ".join(reranked.split()))
    # What re-ranking does is shown on the first problem that it changes.
    assert len(re.findall(r"^  (?:right|wrong \()", reranked, re.MULTILINE)) == 1
    assert reranked.count("  instead of ") == 1


def test_figures(shown):
    folder, _ = shown
    metrics = json.loads((folder / "metrics.json").read_text())
    assert set(metrics["test"]) == {"teacher", "student", "random student"}
    for figures in metrics["test"].values():
        assert figures["num_problems"] == 60 and figures["milliseconds"] > 0 and figures["flops"] > 0
    assert 0 <= metrics["test"]["student"]["answer_accuracy_reranked"] <= 1
    assert metrics["test"]["teacher"]["layers"] == 2 and metrics["test"]["student"]["layers"] == 1
    assert metrics["data"]["report"]["splits"]["test"]["overlap"] == 0
    assert json.loads((folder / "run.json").read_text())["command"] == "hf-mwp quickstart"
    assert (folder / "learning_curve.png").exists() and (folder / "run_config.yaml").exists()


def test_folders_load(shown):
    folder, _ = shown
    for name in ("teacher", "student"):
        (result,) = pipeline("math-word-problem", model=str(folder / name), device="cpu")(
            "Tom has 4 apples and 2 pears."
        )
        assert result["numbers"] == ["4", "2"]


def test_an_earlier_quickstart_is_replaced_and_nothing_else(shown, encoder, tmp_path, capsys):
    folder, _ = shown
    argv = ["quickstart", "--fast", "--no-baseline", "--encoder", str(encoder), "--student_layers=1"]
    assert main([*argv, "--output_dir", str(folder)]) == 0
    capsys.readouterr()
    (tmp_path / "thesis.txt").write_text("mine")
    assert main([*argv, "--output_dir", str(tmp_path)]) == 1
    assert "is not empty and not from an earlier quickstart" in capsys.readouterr().err


def test_without_the_package_the_error_says_what_to_install(monkeypatch, capsys, tmp_path):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["quickstart", "--output_dir", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "pip install 'hf-mwp[demo]'" in error and error.count("\n") == 1

import io
import json
import logging
import re
import subprocess
from enum import Enum

import pytest
import yaml
from rich.console import Console
from transformers import TrainerState

from hf_mwp.commands.tasks.plots import draw_learning_curve
from hf_mwp.commands.terminal.console import accuracy_table, make_console
from hf_mwp.commands.terminal.progress import RichProgressCallback
from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.run_folder import RunFolder, git_revision
from hf_mwp.utils.usage_error import UsageError


class Kind(Enum):
    ONE = "one"


def test_values_are_written_as_yaml(tmp_path):
    values = {"seed": 3, "kind": Kind.ONE, "list": (1, 2.5), "mapping": {"a": None}, "path": tmp_path, "数": "一"}
    folder = RunFolder(tmp_path / "run", "train", values)
    folder.begin()
    logging.getLogger("hf_mwp.commands").info("a line")
    folder.finish({"accuracy": 0.5})
    written = yaml.safe_load((tmp_path / "run" / "run_config.yaml").read_text(encoding="utf-8"))
    assert written == values | {"kind": "one", "list": [1, 2.5], "path": str(tmp_path)}
    assert json.loads((tmp_path / "run" / "metrics.json").read_text()) == {"accuracy": 0.5}
    assert "a line" in (tmp_path / "run" / "run.log").read_text()
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert run["command"] == "hf-mwp train" and "transformers" in run["libraries"]


@pytest.mark.parametrize("given", [["--hub_token=hf_me"], ["--hub-token", "hf_me"], ["--hub_token", "hf_me"]])
@pytest.mark.parametrize("name", ["hub_token", "llm_api_key"])
def test_a_token_is_not_kept(tmp_path, monkeypatch, given, name):
    given = [word.replace("hub_token", name).replace("hub-token", name.replace("_", "-")) for word in given]
    monkeypatch.setattr("sys.argv", ["hf-mwp", "train", *given, "--seed", "3"])
    folder = RunFolder(tmp_path / "run", "train", {"seed": 3, name: "hf_me"})
    folder.begin()
    folder.finish({})
    assert json.loads((tmp_path / "run" / "run.json").read_text())["arguments"] == ["train", "--seed", "3"]
    assert yaml.safe_load((tmp_path / "run" / "run_config.yaml").read_text()) == {"seed": 3}


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="file .*another output folder"):
        RunFolder(tmp_path / "file", "train", {})


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    folder = RunFolder(tmp_path / "run", "train", {})
    folder.begin()
    folder.finish({})
    assert not (tmp_path / "run").exists()
    assert make_console().quiet


def test_git_revision(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert git_revision() is None
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "--allow-empty", "-m", "one"]):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *command], check=True)
    assert len(git_revision()) == 40
    (tmp_path / "file").write_text("1")
    subprocess.run(["git", "add", "file"], check=True)
    assert git_revision().endswith("-dirty")


def _width(path):
    return int.from_bytes(path.read_bytes()[16:20], "big")


def test_curve(tmp_path):
    history = [{"epoch": 0.5, "loss": 2.0}, {"epoch": 1.0, "eval_answer_accuracy": 0.5}, {"train_runtime": 1}]
    assert draw_learning_curve({"a": history, "b": history}, tmp_path / "curve.png", title="both")
    assert (tmp_path / "curve.png").stat().st_size > 1000
    width = _width(tmp_path / "curve.png")
    assert draw_learning_curve({"a": history[:1]}, tmp_path / "loss.png")
    assert _width(tmp_path / "loss.png") == width / 2  # the panel without a metric is left out
    assert not draw_learning_curve({"a": []}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_accuracy_table():
    reports = {
        "all": {"num_problems": 4, "answer_accuracy": 0.5, "num_problems_low": 3, "answer_accuracy_low": 2 / 3},
        "some": {
            "num_problems": 1704,
            "answer_accuracy": 0.125,
            "num_equations": 619,
            "equation_accuracy": 104 / 619,
            "num_unjudged": 36,
        },
        "none": {"num_problems": 0, "num_equations": 0},
    }
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(accuracy_table("A title", reports))
    text = console.export_text()
    for part in ("A title", r"50\.0", r"66\.7 .*\b3\b", r"1704 .*\b36\b", r"16\.8 .*\b619\b"):
        assert re.search(part, text)
    assert "high" not in text
    assert percent(None) == "-"


def test_the_line_of_an_evaluation_names_the_count_of_its_equations():
    console = Console(width=200, record=True, file=io.StringIO())
    metrics = {"eval_answer_accuracy": 0.125, "eval_equation_accuracy": 104 / 619, "eval_num_problems": 1704}
    progress = RichProgressCallback(console, "a model")
    for count in (619, 1704):
        progress.on_evaluate(None, TrainerState(epoch=1.0), None, metrics | {"eval_num_equations": count})
    first, second = console.export_text().splitlines()
    assert re.search(r"16\.8 %.*619", first) and "16.8 %" in second and "1704" not in second

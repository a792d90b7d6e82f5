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


class Choice(Enum):
    FIRST = "first"


def record_run(path, values, metrics):
    folder = RunFolder(path, "train", values)
    folder.begin()
    logging.getLogger("hf_mwp.commands").info("a line")
    folder.finish(metrics)


def test_options_metrics_and_environment_are_recorded(tmp_path):
    values = {"seed": 3, "choice": Choice.FIRST, "list": (1, 2.5), "mapping": {"a": None}, "数": "一"}
    values["path"] = tmp_path
    run = tmp_path / "run"
    record_run(run, values, {"accuracy": 0.5})
    options = yaml.safe_load((run / "run_config.yaml").read_text(encoding="utf-8"))
    assert options == values | {"choice": "first", "list": [1, 2.5], "path": str(tmp_path)}
    assert json.loads((run / "metrics.json").read_text()) == {"accuracy": 0.5}
    assert "a line" in (run / "run.log").read_text()
    record = json.loads((run / "run.json").read_text())
    assert record["command"] == "hf-mwp train" and "transformers" in record["libraries"]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("hub_token", ["--hub_token=hf_me"]),
        ("hub_token", ["--hub-token", "hf_me"]),
        ("llm_api_key", ["--llm_api_key", "hf_me"]),
    ],
)
def test_secrets_are_not_recorded(name, words, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["hf-mwp", "train", *words, "--seed", "3"])
    record_run(tmp_path, {"seed": 3, name: "hf_me"}, {})
    assert json.loads((tmp_path / "run.json").read_text())["arguments"] == ["train", "--seed", "3"]
    assert yaml.safe_load((tmp_path / "run_config.yaml").read_text()) == {"seed": 3}


def test_only_the_first_process_writes(tmp_path, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    record_run(tmp_path / "run", {}, {})
    assert not (tmp_path / "run").exists()
    assert make_console().quiet


def test_git_revision(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert git_revision() is None

    def git(*words):
        identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *identity, *words], check=True)

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "first")
    assert len(git_revision()) == 40
    (tmp_path / "file").write_text("1")
    git("add", "file")
    assert git_revision().endswith("-dirty")


def test_learning_curve_is_drawn_without_empty_panels(tmp_path):
    history = [{"epoch": 0.5, "loss": 2.0}, {"epoch": 1.0, "eval_answer_accuracy": 0.5}, {"train_runtime": 1}]
    assert draw_learning_curve({"a": history, "b": history}, tmp_path / "both.png", title="both")
    assert draw_learning_curve({"a": history[:1]}, tmp_path / "loss.png")
    widths = {}
    for path in tmp_path.iterdir():
        widths[path.stem] = int.from_bytes(path.read_bytes()[16:20], "big")
    assert widths["loss"] == widths["both"] / 2
    assert not draw_learning_curve({"a": []}, tmp_path / "none.png")
    assert not (tmp_path / "none.png").exists()


def test_accuracy_table_has_shares_and_numbers():
    reports = {
        "all": {"num_problems": 4, "answer_accuracy": 0.5, "num_problems_low": 3, "answer_accuracy_low": 2 / 3},
        "some": {"num_problems": 1704, "num_equations": 619, "equation_accuracy": 104 / 619, "num_unjudged": 36},
        "none": {"num_problems": 0, "num_equations": 0},
    }
    console = Console(width=100, record=True, file=io.StringIO())
    console.print(accuracy_table("A title", reports))
    text = console.export_text()
    for pattern in ("A title", r"50\.0", r"66\.7 .*\b3\b", r"1704 .*\b36\b", r"16\.8 .*\b619\b"):
        assert re.search(pattern, text)
    assert "high" not in text
    assert percent(None) == "-"


@pytest.mark.parametrize(("num_equations", "is_printed"), [(619, True), (1704, False)])
def test_evaluation_line_has_the_number_of_equations_if_it_differs(num_equations, is_printed):
    console = Console(width=200, record=True, file=io.StringIO())
    metrics = {"eval_answer_accuracy": 0.125, "eval_equation_accuracy": 104 / 619, "eval_num_problems": 1704}
    metrics["eval_num_equations"] = num_equations
    RichProgressCallback(console, "a model").on_evaluate(None, TrainerState(epoch=1.0), None, metrics)
    text = console.export_text()
    assert "16.8 %" in text and (str(num_equations) in text) == is_printed

"""Commands that share their work among processes, as `accelerate launch` starts them."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from hf_mwp.commands.main import main
from hf_mwp.solver.solving import kept_records
from hf_mwp.utils.main_process import wait_for_all
from tests.compress.trainers.processes import close, launch
from tests.tiny import tiny_rows


COUNT = 9


def run_command(run):
    """Runs a command in chunks of five; with `kill`, the first process ends without any result or clean-up."""
    kept_records.AT_ONCE = 5
    if run.get("kill") and os.environ["RANK"] == "0":
        kept_records.write_json = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
    assert main(run["argv"]) == 0


def wait_and_look(run):
    """The first process comes late, and leaves a file before it waits."""
    path = Path(run["output_dir"]).with_name("left")
    wait_for_all()  # The first call takes long.
    if os.environ["RANK"] == "0":
        time.sleep(3)
        path.touch()
    wait_for_all()
    assert path.exists()


def test_processes_wait_for_each_other(tmp_path):
    ended = launch(wait_and_look, [{"output_dir": str(tmp_path / "x")}], 2)
    assert ended.returncode == 0, ended.stderr


@pytest.fixture
def problems(tmp_path):
    rows = tiny_rows(COUNT, seed=3)
    lines = [json.dumps({name: row[name] for name in ("id", "text", "equation", "answer")}) for row in rows]
    (tmp_path / "test.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
    return str(tmp_path / "test.jsonl")


def argv(command, solver_folder, problems, folder):
    model = ["--model", str(solver_folder)]
    if command == "solve":
        return ["solve", *model, "--file", problems, "--output", str(folder / "found.jsonl"), "--runtime", "torch"]
    if command == "evaluate":
        return ["evaluate", *model, "--dataset", problems, "--output_dir", str(folder / "run")]
    return ["pseudo-label", *model, "--problems", problems, "--output_dir", str(folder / "run"), "--num_beams", "3"]


def result(command, folder):
    names = {"pseudo-label": "run/labelled.jsonl", "evaluate": "run/predictions.jsonl", "solve": "found.jsonl"}
    return [json.loads(line) for line in (folder / names[command]).read_text("utf-8").splitlines()]


@pytest.mark.parametrize("command", ["solve", "evaluate", "pseudo-label"])
def test_two_processes_give_what_one_does(command, solver_folder, problems, tmp_path, capsys):
    folders = [tmp_path / name for name in ("one", "two")]
    for folder in folders:
        folder.mkdir()
    assert main(argv(command, solver_folder, problems, folders[0])) == 0
    run = {"output_dir": str(folders[1] / "x"), "argv": argv(command, solver_folder, problems, folders[1])}
    ended = launch(run_command, [run], 2)
    assert ended.returncode == 0, ended.stderr
    expected = result(command, folders[0])
    assert command == "pseudo-label" or [row["id"] for row in expected] == [f"tiny-{index}" for index in range(COUNT)]
    close(result(command, folders[1]), expected)
    assert not list(folders[1].glob("*unfinished")) and not list(folders[1].glob("run/unfinished"))
    if command != "solve":
        metrics = [json.loads((folder / "run" / "metrics.json").read_text("utf-8")) for folder in folders]
        key = "fates" if command == "pseudo-label" else "test"
        for figures in metrics:
            figures[key].pop("calibration", None)
        assert metrics[0][key] == metrics[1][key]


@pytest.mark.slow
def test_a_killed_run_resumes_with_another_number_of_processes(solver_folder, problems, tmp_path, monkeypatch, capsys):
    arguments = argv("solve", solver_folder, problems, tmp_path)
    assert launch(run_command, [{"output_dir": str(tmp_path / "x"), "argv": arguments, "kill": True}], 2).returncode
    assert not (tmp_path / "found.jsonl").exists()
    solved, write = [], kept_records.write_json

    def noted(path, content):
        solved.append(len(content["records"]))
        write(path, content)

    monkeypatch.setattr(kept_records, "AT_ONCE", 5)
    monkeypatch.setattr(kept_records, "write_json", noted)
    assert main(arguments) == 0
    # The second process had solved the last four of the nine problems.
    assert solved == [5]
    assert len(result("solve", tmp_path)) == COUNT


def test_a_file_is_not_written_over(solver_folder, problems, tmp_path, capsys):
    (tmp_path / "found.jsonl").write_text("mine")
    assert main(argv("solve", solver_folder, problems, tmp_path)) == 1
    assert "exists" in capsys.readouterr().err and (tmp_path / "found.jsonl").read_text() == "mine"


def test_several_processes_need_a_file(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["solve", "--model=a", "有4个和2个，一共几个？"]) == 1
    assert "--output" in capsys.readouterr().err

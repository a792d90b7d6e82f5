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


NUM_PROBLEMS = 9
OUTPUTS = {"solve": "answers.jsonl", "evaluate": "run/predictions.jsonl", "pseudo-label": "run/labelled.jsonl"}


def run_command(run):
    """Run a command in chunks of five; with `kill`, the first process ends without any result or clean-up."""
    kept_records.AT_ONCE = 5
    if run.get("kill") and os.environ["RANK"] == "0":
        kept_records.write_json = lambda *args: os.kill(os.getpid(), signal.SIGKILL)
    if "late" in run:
        check_waiting(Path(run["late"]))
    assert main(run["argv"]) == 0


def check_waiting(path):
    """The first process is late, and writes a file before it waits."""
    wait_for_all()  # The first call takes long.
    if os.environ["RANK"] == "0":
        time.sleep(1)
        path.touch()
    wait_for_all()
    assert path.exists()


@pytest.fixture(scope="module")
def problem_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("problems") / "test.jsonl"
    lines = []
    for row in tiny_rows(NUM_PROBLEMS, seed=3):
        lines.append(json.dumps({name: row[name] for name in ("id", "text", "equation", "answer")}))
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def argv(command, solver_folder, problem_file, folder):
    """The arguments of a command that writes to a folder, which is made."""
    folder.mkdir(parents=True, exist_ok=True)
    run_folder = str(folder / "run")
    options = {
        "solve": ["--file", problem_file, "--output", str(folder / OUTPUTS["solve"]), "--runtime", "torch"],
        "evaluate": ["--dataset", problem_file, "--output_dir", run_folder],
        "pseudo-label": ["--problems", problem_file, "--output_dir", run_folder, "--num_beams", "3"],
    }
    return [command, "--model", str(solver_folder), *options[command]]


def read_rows(path):
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.mark.slow
@pytest.mark.parametrize("command", OUTPUTS)
def test_two_processes_give_the_results_of_one(command, solver_folder, problem_file, tmp_path):
    assert main(argv(command, solver_folder, problem_file, tmp_path)) == 0
    folder = tmp_path / "two"
    run = {"output_dir": str(folder / "x"), "argv": argv(command, solver_folder, problem_file, folder)}
    if command == "solve":
        run["late"] = str(folder / "late")
    finished = launch(run_command, [run], 2)
    assert finished.returncode == 0, finished.stderr
    expected = read_rows(tmp_path / OUTPUTS[command])
    if command != "pseudo-label":
        assert [row["id"] for row in expected] == [f"tiny-{index}" for index in range(NUM_PROBLEMS)]
    close(read_rows(folder / OUTPUTS[command]), expected)
    assert not list(folder.rglob("*unfinished"))
    if command != "solve":
        results = []
        for run_folder in (tmp_path / "run", folder / "run"):
            metrics = json.loads((run_folder / "metrics.json").read_text("utf-8"))
            results.append(metrics["fates" if command == "pseudo-label" else "test"])
            results[-1].pop("calibration", None)
        assert results[0] == results[1]


@pytest.mark.slow
def test_killed_run_is_resumed_by_another_number_of_processes(solver_folder, problem_file, tmp_path, monkeypatch):
    arguments = argv("solve", solver_folder, problem_file, tmp_path)
    killed = launch(run_command, [{"output_dir": str(tmp_path / "x"), "argv": arguments, "kill": True}], 2)
    assert killed.returncode
    assert not (tmp_path / OUTPUTS["solve"]).exists()
    chunk_sizes = []
    write_json = kept_records.write_json

    def recording_write_json(path, content):
        chunk_sizes.append(len(content["records"]))
        write_json(path, content)

    monkeypatch.setattr(kept_records, "AT_ONCE", 5)
    monkeypatch.setattr(kept_records, "write_json", recording_write_json)
    assert main(arguments) == 0
    # The second process had solved the last four of the nine problems.
    assert chunk_sizes == [5]
    assert len(read_rows(tmp_path / OUTPUTS["solve"])) == NUM_PROBLEMS


def test_existing_file_is_not_overwritten(solver_folder, problem_file, tmp_path, capsys):
    path = tmp_path / OUTPUTS["solve"]
    path.write_text("mine")
    assert main(argv("solve", solver_folder, problem_file, tmp_path)) == 1
    assert "exists" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_several_processes_need_a_file(monkeypatch, capsys):
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert main(["solve", "--model=a", "有4个和2个，一共几个？"]) == 1
    assert "--output" in capsys.readouterr().err

import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.worker_processes import in_order, map_in_processes
from tests.slow_parameters import slow_except


class Unpicklable(Exception):
    def __init__(self, first, second):
        super().__init__(f"{first} {second}")


def load(action="double"):
    """The function that a process applies; module level, because processes receive it by its name."""
    if action == "fail to load":
        raise FileNotFoundError("no model")

    def apply(item):
        if item == 3 and action == "fail":
            raise ValueError("3 is not a problem")
        if item == 3 and action == "fail without pickle":
            raise Unpicklable("3", "fails")
        if item == 3 and action == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if action == "wait":
            Path(item).write_text(str(os.getpid()))
            time.sleep(60)
        if action == "threads":
            return os.environ["OMP_NUM_THREADS"], os.getpid()
        return 2 * item

    return apply


def test_results_of_two_processes_are_those_of_one():
    results = list(map_in_processes(load, range(7), 2))
    assert sorted(results) == [(index, 2 * index) for index in range(7)]


def test_no_item_starts_no_process():
    assert list(map_in_processes(None, [], 2)) == []


@pytest.mark.slow
def test_items_are_read_when_a_process_is_free():
    read = []

    def items():
        for item in range(9):
            read.append(item)
            yield item

    results = map_in_processes(load, items(), 2)
    next(results)
    assert len(read) <= 4
    results.close()


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ("fail", ValueError, "3 is not a problem"),
        ("die", UsageError, r"exit code -9.*fewer processes"),
        *slow_except(
            [
                ("fail to load", FileNotFoundError, "no model"),
                ("fail without pickle", RuntimeError, "Unpicklable: 3 fails"),
            ]
        ),
    ],
)
def test_error_of_a_process_is_raised(action, error, message):
    with pytest.raises(error, match=message) as raised:
        list(map_in_processes(partial(load, action), range(5), 2))
    if action == "fail":
        assert "in apply" in raised.value.__notes__[0]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the number of usable cores is not known")
def test_processes_divide_the_cores(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: range(6))
    [(_, (threads, process))] = map_in_processes(partial(load, "threads"), [0], 4)
    assert threads == "6"
    assert process != os.getpid()
    assert "OMP_NUM_THREADS" not in os.environ
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    [(_, (threads, _))] = map_in_processes(partial(load, "threads"), [0], 4)
    assert threads == "5"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="no signals")
def test_no_process_survives_an_interrupt(tmp_path):
    files = [tmp_path / "first", tmp_path / "second"]
    code = f"""
        import functools, signal
        # Programs in the background ignore the signal.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        from hf_mwp.utils.worker_processes import map_in_processes
        from tests.utils.test_worker_processes import load
        list(map_in_processes(functools.partial(load, "wait"), {[str(file) for file in files]!r}, 2))
    """
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", "\n".join(line.strip() for line in code.splitlines())]
    process = subprocess.Popen(command, cwd=root, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 60
    while not all(file.exists() and file.read_text() for file in files):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    # As a terminal does: to all processes of the group.
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert errors.count("Traceback") == 1
    for file in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(file.read_text()), 0)


def test_in_order():
    assert list(in_order([(2, "c"), (0, "a"), (1, "b"), (3, "d")])) == ["a", "b", "c", "d"]
    assert list(in_order([])) == []

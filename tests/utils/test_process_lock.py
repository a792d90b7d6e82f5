import multiprocessing
import threading
import time

from transformers.utils import logging

from hf_mwp.utils.job import process_lock


def hold(path, pipe):
    with process_lock(path):
        pipe.send("held")
        time.sleep(60)


def test_who_waits_is_told_and_a_killed_process_leaves_it_free(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.get_logger("hf_mwp"), "propagate", True)
    path, (here, there) = tmp_path / "new" / "lock", multiprocessing.Pipe()
    with process_lock(path):
        assert not caplog.messages
    other = multiprocessing.get_context("fork").Process(target=hold, args=(path, there))
    other.start()
    assert here.recv() == "held"
    threading.Timer(0.2, other.kill).start()
    with process_lock(path):
        assert not other.is_alive() or other.join() is None
    assert len(caplog.messages) == 1 and str(path.parent) in caplog.messages[0]

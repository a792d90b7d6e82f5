import multiprocessing
import threading
import time

from transformers.utils import logging

from hf_mwp.utils.job import process_lock


def hold(path, pipe):
    with process_lock(path):
        pipe.send("locked")
        time.sleep(60)


def test_waiting_is_logged_and_a_killed_process_releases_the_lock(tmp_path, caplog, monkeypatch):
    monkeypatch.setattr(logging.get_logger("hf_mwp"), "propagate", True)
    path = tmp_path / "new" / "lock"
    with process_lock(path):
        assert not caplog.messages
    receiver, sender = multiprocessing.Pipe()
    holder = multiprocessing.get_context("fork").Process(target=hold, args=(path, sender))
    holder.start()
    assert receiver.recv() == "locked"
    threading.Timer(0.2, holder.kill).start()
    with process_lock(path):
        holder.join()
    assert len(caplog.messages) == 1 and str(path.parent) in caplog.messages[0]

import multiprocessing
import os
import socket
import time

from hf_mwp.store.process_lock import ProcessLock


def hold(path, pipe):
    lock = ProcessLock(path)
    pipe.send(lock.acquire())
    time.sleep(60)


def test_one_process_holds_it_and_a_killed_one_leaves_it_free(tmp_path):
    path, (here, there) = tmp_path / "new" / "lock", multiprocessing.Pipe()
    other = multiprocessing.get_context("fork").Process(target=hold, args=(path, there))
    other.start()
    assert here.recv() is True
    lock = ProcessLock(path)
    assert not lock.acquire()
    assert lock.holder.startswith(f"process {other.pid} on {socket.gethostname()}, since 20")
    other.kill()
    other.join()
    assert lock.acquire()
    assert f"process {os.getpid()} " in lock.holder
    lock.release()


def test_a_lock_that_is_given_back_leaves_no_note_and_no_file_if_asked(tmp_path):
    lock = ProcessLock(tmp_path / "lock")
    assert lock.acquire()
    lock.release()
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]
    assert lock.acquire()
    lock.release(remove=True)
    assert not list(tmp_path.iterdir())


def test_who_waits_is_told_for_whom_and_only_then(tmp_path):
    told = []
    with ProcessLock(tmp_path / "lock").held(told.append):
        assert not told
        (tmp_path / "lock.holder").write_text("{")
        assert ProcessLock(tmp_path / "lock").holder == "another process"

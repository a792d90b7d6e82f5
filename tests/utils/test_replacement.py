"""Files that are replaced by new ones, also if the process is killed at any step."""

import os
from pathlib import Path

import pytest

from hf_mwp.utils.replacement import is_interrupted, replacing_files
from hf_mwp.utils.run_folder import RunFolder


OLD = {"config.json": "old", "model.safetensors": "old", "export.json": "old", "notes.txt": "of the user"}
NEW = {"config.json": "new", "model.safetensors": "new", "tokenizer.json": "new", "notes.txt": "of the user"}


def write(folder, files):
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)


def read(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def replace(folder):
    with replacing_files(folder, lambda new: ["export.json"]) as unfinished:
        write(unfinished, {name: text for name, text in NEW.items() if text == "new"})


def assert_only(folder, files):
    assert read(folder) == files and len(list(folder.iterdir())) == len(files)


def test_new_files_replace_old_ones_and_outdated_files_are_deleted(tmp_path):
    write(tmp_path, OLD)
    replace(tmp_path)
    assert_only(tmp_path, NEW)


def test_all_files_are_the_old_ones_after_an_error(tmp_path):
    write(tmp_path, OLD)
    with pytest.raises(OSError, match="No space"), replacing_files(tmp_path, lambda new: ["*"]) as unfinished:
        write(unfinished, {"config.json": "new"})
        raise OSError("No space left on device")
    assert_only(tmp_path, OLD)


def replace_in_a_killed_process(folder, step):
    """Run `replace` in a process that is killed instead of its file operation number `step`. Return its status."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    num_operations = 0

    def counted(operation):
        def run(*args, **kwargs):
            nonlocal num_operations
            if num_operations == step:
                os._exit(9)
            num_operations += 1
            return operation(*args, **kwargs)

        return run

    for name in ("mkdir", "write_text", "replace", "rename", "unlink"):
        setattr(Path, name, counted(getattr(Path, name)))
    os.rmdir = counted(os.rmdir)
    try:
        replace(folder)
    finally:
        os._exit(0)


@pytest.mark.slow
def test_killed_process_leaves_the_old_or_the_new_files(tmp_path):
    outcomes = set()
    for step in range(100):
        folder = tmp_path / str(step)
        write(folder, OLD)
        status = replace_in_a_killed_process(folder, step)
        # Without `config.json`, no model loads: it is the first file to be moved away and the last one to be written.
        if not is_interrupted(folder) or "config.json" in read(folder):
            assert read(folder) in (OLD, NEW), step
        with RunFolder(folder, for_model=True):
            pass
        assert read(folder) in (OLD, NEW), step
        outcomes.add(read(folder)["config.json"])
        replace(folder)
        assert_only(folder, NEW)
        if status == 0:
            break
    assert step > 10 and outcomes == {"old", "new"}

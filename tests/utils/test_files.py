"""Files that are written whole, digests, and names of local files."""

import ntpath
import os
from pathlib import PureWindowsPath
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

from hf_mwp.utils.files import (
    content_digest,
    remove_folder,
    replacing,
    shorten_paths,
    write_atomically,
    write_json_lines,
    writing_weights,
)
from hf_mwp.utils.usage_error import UsageError


def test_a_file_is_replaced_only_when_all_is_written(tmp_path):
    path = tmp_path / "new" / "records.jsonl"
    write_json_lines(path, [{"text": "苹果"}, {"count": 4}])
    assert path.read_text("utf-8") == '{"text": "苹果"}\n{"count": 4}\n'

    def fails():
        yield {"count": 5}
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_json_lines(path, fails())
    assert path.read_text("utf-8") == '{"text": "苹果"}\n{"count": 4}\n'
    write_atomically(path, "short\n")
    assert path.read_text("utf-8") == "short\n"


def test_two_writers_of_a_file_have_different_temporary_names(tmp_path):
    path = tmp_path / "answers.jsonl"
    with replacing(path) as first, replacing(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_the_umask_decides_who_reads_weights(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        with writing_weights(tmp_path):
            save_file({"weight": np.ones(3)}, tmp_path / "model.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == mode
    assert [path.name for path in tmp_path.iterdir()] == ["model.safetensors"]


@pytest.fixture
def small_disk():
    """Limit the size of the files that this process can write to 1,000 bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


def save_text(path):
    path.write_text("a" * 5000)


@pytest.mark.parametrize(
    "save",
    [
        lambda path: save_file({"weight": np.ones(5000)}, path),
        lambda path: torch.save({"state": torch.ones(5000)}, path),
        save_text,
    ],
)
def test_a_full_disk_is_a_sentence(tmp_path, small_disk, save):
    with pytest.raises(UsageError, match=f"weights cannot be written to {tmp_path}: .*Free disk space"):
        with writing_weights(tmp_path):
            save(tmp_path / "model.safetensors")


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory")])
def test_missing_memory_is_a_sentence(tmp_path, error):
    with pytest.raises(UsageError, match=f"weights cannot be written to {tmp_path}: .*to free memory"):
        with writing_weights(tmp_path):
            raise error


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), FileNotFoundError(2, "No such file")])
def test_other_errors_of_saving_stay(tmp_path, error):
    with pytest.raises(type(error)), writing_weights(tmp_path):
        raise error


def test_a_folder_is_removed_and_of_a_link_the_link(tmp_path):
    folder, link = tmp_path / "folder", tmp_path / "link"
    (folder / "below").mkdir(parents=True)
    link.symlink_to(folder)
    remove_folder(link)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"] and (folder / "below").is_dir()
    remove_folder(folder)
    assert not any(tmp_path.iterdir())


def test_the_digest_is_that_of_names_and_contents(tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "below").mkdir(parents=True)
        (folder / "below" / "a.txt").write_text("one")
        (folder / "b.txt").write_text("two")
    digest = content_digest(first)
    assert content_digest(second) == digest == content_digest(str(first))
    assert content_digest(first / "b.txt") != content_digest(first / "below" / "a.txt")
    # The same size at another time: read again.
    (second / "b.txt").write_text("six")
    os.utime(second / "b.txt", ns=(1, 1))
    assert content_digest(second) != digest
    # Files of the operating system's file manager do not count.
    (first / ".DS_Store").write_text("view")
    assert content_digest(first) == digest
    (first / "b.txt").rename(first / "c.txt")
    assert content_digest(first) != digest


def test_local_files_are_named_by_their_last_part(tmp_path):
    folder = tmp_path / "encoder"
    folder.mkdir()
    known = {"encoder": f"{folder}/", "corpus": [f"{folder}", "math23k"], "steps": 3}
    assert shorten_paths(known) == {"encoder": "encoder", "corpus": ["encoder", "math23k"], "steps": 3}
    # A Hub id is no folder; a long text is neither, and no file system is asked in vain.
    assert shorten_paths("hfl/chinese-roberta-wwm-ext") == "hfl/chinese-roberta-wwm-ext"
    assert shorten_paths("a" * 5000 + "/a") == "a" * 5000 + "/a"


def test_folders_of_windows_are_named_by_their_last_part(monkeypatch):
    monkeypatch.setattr("hf_mwp.utils.files.os", SimpleNamespace(path=ntpath, sep="\\"))
    monkeypatch.setattr("hf_mwp.utils.files.Path", PureWindowsPath)
    assert shorten_paths(r"C:\Users\me\runs\teacher") == "teacher"
    assert shorten_paths("hfl/chinese-roberta-wwm-ext") == "hfl/chinese-roberta-wwm-ext"

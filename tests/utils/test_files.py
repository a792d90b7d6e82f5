"""Files that are written as a whole, digests, and names of local files."""

import ntpath
import os
from contextlib import contextmanager
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
    write_json_lines,
    writing_weights,
)
from hf_mwp.utils.usage_error import UsageError


def test_file_is_replaced_only_when_all_is_written(tmp_path):
    path = tmp_path / "new" / "records.jsonl"
    write_json_lines(path, [{"text": "苹果"}, {"number": 4}])
    expected = '{"text": "苹果"}\n{"number": 4}\n'
    assert path.read_text("utf-8") == expected

    def interrupted_rows():
        yield {"number": 5}
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space"):
        write_json_lines(path, interrupted_rows())
    assert path.read_text("utf-8") == expected
    write_json_lines(path, [{}])
    assert path.read_text("utf-8") == "{}\n"


def test_two_writers_of_a_file_have_different_temporary_names(tmp_path):
    path = tmp_path / "answers.jsonl"
    with replacing(path) as first, replacing(path) as second:
        assert first != second
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_umask_decides_who_reads_weights(umask, mode, tmp_path):
    before = os.umask(umask)
    try:
        with writing_weights(tmp_path):
            save_file({"weight": np.ones(3)}, tmp_path / "model.safetensors")
    finally:
        os.umask(before)
    assert (tmp_path / "model.safetensors").stat().st_mode & 0o777 == mode
    assert len(list(tmp_path.iterdir())) == 1


@contextmanager
def small_disk():
    """Limit the size of the files that this process can write to 1,000 bytes."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    "save",
    [
        lambda path: save_file({"weight": np.ones(5000)}, path),
        lambda path: torch.save({"state": torch.ones(5000)}, path),
        lambda path: path.write_text("a" * 5000),
    ],
)
def test_full_disk_is_a_usage_error(save, tmp_path):
    with pytest.raises(UsageError, match=f"{tmp_path}: .*Free disk space"), small_disk(), writing_weights(tmp_path):
        save(tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), UsageError),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), UsageError),
        (RuntimeError("shapes differ"), RuntimeError),
        (FileNotFoundError(2, "No such file"), FileNotFoundError),
    ],
)
def test_missing_memory_is_a_usage_error_and_other_errors_stay(error, expected, tmp_path):
    with pytest.raises(expected), writing_weights(tmp_path):
        raise error


def test_only_the_link_to_a_folder_is_removed(tmp_path):
    folder = tmp_path / "folder"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    remove_folder(tmp_path / "link")
    assert (folder / "below").is_dir() and len(list(tmp_path.iterdir())) == 1
    remove_folder(folder)
    assert not any(tmp_path.iterdir())


def test_digest_depends_on_names_and_contents(tmp_path):
    first = tmp_path / "first"
    second = tmp_path / "second"
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


def test_local_files_are_shortened_to_their_last_component(tmp_path):
    folder = tmp_path / "encoder"
    folder.mkdir()
    options = {"encoder": f"{folder}/", "corpus": [f"{folder}", "math23k"], "steps": 3}
    assert shorten_paths(options) == {"encoder": "encoder", "corpus": ["encoder", "math23k"], "steps": 3}


@pytest.mark.parametrize("name", ["hfl/chinese-roberta-wwm-ext", "a" * 5000 + "/a"])
def test_hub_ids_and_long_texts_are_no_folders(name):
    assert shorten_paths(name) == name


def test_folders_of_windows_are_shortened_to_their_last_component(monkeypatch):
    monkeypatch.setattr("hf_mwp.utils.files.os", SimpleNamespace(path=ntpath, sep="\\"))
    monkeypatch.setattr("hf_mwp.utils.files.Path", PureWindowsPath)
    assert shorten_paths(r"C:\Users\me\runs\teacher") == "teacher"
    assert shorten_paths("hfl/chinese-roberta-wwm-ext") == "hfl/chinese-roberta-wwm-ext"

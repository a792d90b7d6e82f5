import errno
import os
import re
import subprocess

import pytest
import torch
from safetensors.torch import save_file

from hf_mwp.store.files import DiskFullError, means_full_disk


@pytest.fixture
def small_disk(tmp_path):
    """A disk of one mebibyte; the test is skipped where none can be made."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a small disk cannot be mounted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize(
    "write",
    [
        lambda tensors, path: torch.save(tensors, path),
        lambda tensors, path: save_file(tensors, path),
        lambda tensors, path: path.write_bytes(bytes(4_000_000)),
    ],
    ids=["torch", "safetensors", "python"],
)
def test_what_writers_say_of_a_full_disk(small_disk, write):
    with pytest.raises(Exception) as raised:
        write({"a": torch.zeros(1_000_000)}, small_disk / "file")
    assert means_full_disk(raised.value)


@pytest.mark.parametrize(
    ("error", "full"),
    [
        (RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 576 vs 534"), True),
        (RuntimeError("PytorchStreamWriter failed writing file data/0: file write failed"), True),
        (RuntimeError("PytorchStreamReader failed reading zip archive"), False),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), True),
        (OSError(errno.ENOSPC, "The outputs of the teacher need 3 GB"), False),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), False),
        (ValueError("tags cannot be written: No space left on device"), False),
        (RuntimeError("size mismatch"), False),
        (KeyboardInterrupt("unexpected pos 576 vs 534"), False),
        (None, False),
    ],
)
def test_what_means_a_full_disk_and_does_not_say_where(error, full):
    assert means_full_disk(error) is full


def test_the_error_names_folder_free_bytes_and_remedy(tmp_path):
    error = DiskFullError(tmp_path / "not" / "there", "Make room.")
    assert error.errno == errno.ENOSPC
    assert re.fullmatch(rf"The disk is full: [\d,]+ bytes are free at {tmp_path}/not/there\. Make room\.", str(error))

import copy
import errno
import json
import pickle
import re
import resource
from pathlib import Path

import pytest
import torch
from transformers.modeling_outputs import MaskedLMOutput
from transformers.utils import logging

from hf_mwp.compress.distillation import CacheError, TeacherCache
from hf_mwp.compress.distillation.features import Features
from hf_mwp.compress.distillation.teacher_cache import OutputLayout
from hf_mwp.utils import row_store


# Some of them end in bytes that numpy takes for padding.
KEYS = [bytes(15) + bytes([row]) if row % 2 else bytes([row]) + bytes(15) for row in range(12)]
LAYOUT = OutputLayout(states={"hidden_0": 3}, logits="classes", columns=2)


def collate(rows):
    lengths = torch.tensor([2 + row % 5 for row in rows])
    mask = torch.arange(lengths.max()) < lengths.unsqueeze(1)
    return {"rows": torch.tensor(list(rows)), "attention_mask": mask.long()}


def teacher(batch):
    rows = batch["rows"].float()
    positions = torch.arange(batch["attention_mask"].shape[1] * 3.0).view(1, -1, 3)
    states = (rows.view(-1, 1, 1) + positions,)
    return Features(MaskedLMOutput(logits=torch.stack([rows, -rows], -1), hidden_states=states))


def packed_batches(rows, teacher):
    """Keys and outputs of rows, two at a time."""
    for start in range(0, len(rows), 2):
        batch = collate(rows[start : start + 2])
        yield [KEYS[row] for row in rows[start : start + 2]], LAYOUT.pack(teacher(batch), batch)


def build(folder, rows=range(10), fingerprint="f", teacher=teacher):
    """The cache, after the rows that it lacks are added."""
    cache = TeacherCache(folder, fingerprint)
    with cache.locked():
        missing = cache.missing(KEYS)
        rows = [row for row in rows if row in missing]
        cache.fill(LAYOUT, {"teacher": "t"}, packed_batches(rows, teacher))
    return cache


def check(cache, rows=range(10)):
    """Whether a cache has the outputs of rows, read in reversed order."""
    rows = list(reversed(rows))
    batch = collate(rows)
    stored_rows = cache.read([KEYS[row] for row in rows])
    restored = cache.layout.restore(cache.layout.assemble(stored_rows, batch), torch.float32)
    expected = teacher(batch)
    assert torch.equal(restored["logits"], expected["logits"])
    assert torch.equal(restored["hidden_0"], expected["hidden_0"] * batch["attention_mask"].unsqueeze(-1))


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """A file for each batch or two."""
    monkeypatch.setattr(row_store, "FILE_BYTES", 60)


def test_rows_are_read_in_any_order(tmp_path):
    cache = build(tmp_path)
    assert len(cache) == 10
    assert cache.missing(KEYS).tolist() == [10, 11]
    check(cache)
    loaded = TeacherCache(tmp_path, "f")
    check(loaded, [3, 3, 1])
    assert loaded.layout == LAYOUT
    assert len(list(tmp_path.glob("rows-*.arrow"))) > 1
    assert not list(tmp_path.glob("*.part"))
    message = rf"^{re.escape(str(cache.folder))} has no example 1 of the batch: .*`cache_teacher_outputs=False`\.$"
    with pytest.raises(CacheError, match=message):
        cache.read([KEYS[0], KEYS[11]])


def test_files_are_mapped(tmp_path):
    build(tmp_path)
    cache = TeacherCache(tmp_path, "f", verify=False)
    names = {path.name for path in tmp_path.glob("rows-*.arrow")}
    mapped = set()
    for line in Path("/proc/self/maps").read_text().splitlines():
        if str(tmp_path) in line:
            mapped.add(line.rsplit("/", 1)[1])
    assert mapped == names
    # What is held in memory does not depend on how large a row is, and other processes map the files themselves.
    assert cache._keys.nbytes + cache._numbers.nbytes == 24 * len(cache)
    assert len(pickle.dumps(cache)) < 3000
    check(copy.deepcopy(cache))


@pytest.mark.parametrize("damage", ["removed", "longer", "changed"])
def test_damaged_files_are_written_anew(tmp_path, damage, caplog, monkeypatch):
    build(tmp_path)
    path = tmp_path / "rows-00001.arrow"
    content = path.read_bytes()
    if damage == "removed":
        path.unlink()
    elif damage == "longer":
        path.write_bytes(content + b"x")
    else:
        path.write_bytes(content[:5] + b"?" + content[6:])
    monkeypatch.setattr(logging.get_logger("transformers"), "propagate", True)
    monkeypatch.setattr(logging.get_logger("hf_mwp"), "propagate", True)
    cache = TeacherCache(tmp_path, "f")
    assert str(path) in caplog.text
    assert 0 < len(cache.missing(KEYS[:10])) < 10
    check(build(tmp_path))
    # Without checksums a change of content would not be noticed.
    assert TeacherCache(tmp_path, "f", verify=False).missing(KEYS[:10]).size == 0


def test_damaged_manifests_and_those_of_other_versions_are_refused(tmp_path):
    build(tmp_path)
    path = tmp_path / "manifest.json"
    content = path.read_text()
    path.write_text(json.dumps(json.loads(content) | {"format": 99}))
    with pytest.raises(CacheError, match="format 99.*format 2"):
        TeacherCache(tmp_path, "f")
    for damaged in (content[:40], "[]", "{}", content.replace('"rows"', '"lines"'), "\udcff"):
        path.write_text(damaged, "utf-8", "surrogateescape")
        with pytest.raises(CacheError, match="manifest.json.*damaged"):
            TeacherCache(tmp_path, "f")


def test_rows_completed_before_an_error_stay(tmp_path):
    def failing_teacher(batch):
        if 6 in batch["rows"]:
            raise RuntimeError("out of coffee")
        return teacher(batch)

    with pytest.raises(RuntimeError, match="coffee"):
        build(tmp_path, teacher=failing_teacher)
    assert not list(tmp_path.glob("*.part"))
    # As after a kill: a file that is complete but not in the manifest, and one that is not complete.
    (tmp_path / "rows-00077.arrow").write_bytes(b"orphan")
    (tmp_path / "rows-00078.part").write_bytes(b"incomplete")
    assert 0 < len(TeacherCache(tmp_path, "f")) < 10
    check(build(tmp_path))
    assert not (tmp_path / "rows-00077.arrow").exists()
    assert not list(tmp_path.glob("*.part"))


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 1)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    def filling_teacher(batch):
        # The system refuses to let files grow, as it does on a full disk.
        if 6 in batch["rows"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
        return teacher(batch)

    try:
        with pytest.raises(OSError) as raised:
            build(tmp_path, teacher=filling_teacher)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.errno == errno.EFBIG
    assert not list(tmp_path.glob("*.part"))
    assert len(TeacherCache(tmp_path, "f")) == 6
    check(build(tmp_path))

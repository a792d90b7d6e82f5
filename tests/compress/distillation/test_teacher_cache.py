import copy
import errno
import json
import pickle
import re
import resource
import threading
from pathlib import Path

import numpy as np
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
    return {
        "rows": torch.tensor(list(rows)),
        "attention_mask": (torch.arange(lengths.max()) < lengths.unsqueeze(1)).long(),
    }


def ask(batch):
    rows = batch["rows"].float()
    places = torch.arange(batch["attention_mask"].shape[1] * 3.0).view(1, -1, 3)
    states = (rows.view(-1, 1, 1) + places,)
    return Features(MaskedLMOutput(logits=torch.stack([rows, -rows], -1), hidden_states=states))


def build(folder, rows=range(10), fingerprint="f", ask=ask):
    """The cache with the missing ones of some rows, two at a time."""
    cache = TeacherCache(folder, fingerprint)
    with cache.locked():
        missing = [row for row in rows if row in cache.missing(KEYS)]
        batches = ((chosen, collate(chosen)) for chosen in (missing[at : at + 2] for at in range(0, len(missing), 2)))
        packed = (([KEYS[row] for row in chosen], LAYOUT.pack(ask(batch), batch)) for chosen, batch in batches)
        cache.fill(LAYOUT, {"teacher": "t"}, packed)
    return cache


def check(cache, rows=range(10)):
    rows = list(reversed(rows))
    batch = collate(rows)
    back = cache.layout.restore(cache.layout.assemble(cache.read([KEYS[row] for row in rows]), batch), torch.float32)
    expected = ask(batch)
    assert torch.equal(back["logits"], expected["logits"])
    mask = batch["attention_mask"].unsqueeze(-1)
    assert torch.equal(back["hidden_0"], expected["hidden_0"] * mask)


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    """A file for each batch or two."""
    monkeypatch.setattr(row_store, "FILE_BYTES", 60)


def test_rows_are_found_in_any_order(tmp_path):
    cache = build(tmp_path / "cache")
    assert len(cache) == 10 and cache.missing(KEYS).tolist() == [10, 11]
    check(cache)
    check(TeacherCache(tmp_path / "cache", "f"), [3, 3, 1])
    assert len(list((tmp_path / "cache").glob("rows-*.arrow"))) > 1
    assert not list((tmp_path / "cache").glob("*.part"))
    missing = rf"^{re.escape(str(cache.folder))} has no example 1 of the batch: .*`cache_teacher_outputs=False`\.$"
    with pytest.raises(CacheError, match=missing):
        cache.read([KEYS[0], KEYS[11]])


def test_files_are_mapped(tmp_path):
    build(tmp_path)
    cache = TeacherCache(tmp_path, "f", verify=False)
    mapped = {
        line.rsplit("/", 1)[1] for line in Path("/proc/self/maps").read_text().splitlines() if str(tmp_path) in line
    }
    assert mapped == {path.name for path in tmp_path.glob("rows-*.arrow")} and len(mapped) > 1
    # What is held in memory does not depend on how large a row is, and other processes map the files themselves.
    assert sum(array.nbytes for array in (cache._keys, cache._numbers)) == 24 * len(cache)
    assert len(pickle.dumps(cache)) < 3000
    check(copy.deepcopy(cache))


def test_equal_rows_are_kept_once(tmp_path):
    keys = [bytes([each]) * 16 for each in (1, 2, 1)]
    cache = TeacherCache(tmp_path, "f")
    assert cache.missing(keys).tolist() == [0, 1] and cache.missing([]).tolist() == []


def test_further_rows_are_added(tmp_path):
    build(tmp_path, rows=range(4))
    before = {path.name: path.read_bytes() for path in tmp_path.glob("rows-*.arrow")}
    asked = []

    def noting(batch):
        asked.extend(batch["rows"].tolist())
        return ask(batch)

    cache = build(tmp_path, ask=noting)
    assert sorted(asked) == [4, 5, 6, 7, 8, 9]
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items())
    check(cache)


@pytest.mark.parametrize("kind", ["truncated", "longer", "changed", "missing"])
def test_damaged_files_are_written_anew(tmp_path, kind, caplog, monkeypatch):
    build(tmp_path)
    path = tmp_path / "rows-00001.arrow"
    content = path.read_bytes()
    damaged = {"truncated": content[:-1], "longer": content + b"x", "changed": content[:5] + b"?" + content[6:]}
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(damaged[kind])
    monkeypatch.setattr(logging.get_logger("transformers"), "propagate", True)
    monkeypatch.setattr(logging.get_logger("hf_mwp"), "propagate", True)
    cache = TeacherCache(tmp_path, "f")
    assert str(path) in caplog.text
    missing = cache.missing(KEYS[:10])
    assert 0 < len(missing) < 10
    check(build(tmp_path))
    # Without checksums a change of content would not be noticed.
    assert TeacherCache(tmp_path, "f", verify=False).missing(KEYS[:10]).size == 0


def test_foreign_and_unreadable_folders_are_refused(tmp_path):
    build(tmp_path)
    with pytest.raises(CacheError, match=r"fingerprint f\b.* g\b.*`teacher_cache_dir`"):
        TeacherCache(tmp_path, "g")
    path = tmp_path / "manifest.json"
    content = path.read_text()
    path.write_text(json.dumps(json.loads(content) | {"format": 99}))
    with pytest.raises(CacheError, match="format 99.*format 2"):
        TeacherCache(tmp_path, "f")
    for damaged in (content[:40], "[]", "{}", content.replace('"rows"', '"lines"'), "\udcff"):
        path.write_text(damaged, "utf-8", "surrogateescape")
        with pytest.raises(CacheError, match="manifest.json.*damaged"):
            TeacherCache(tmp_path, "f")


def test_what_was_completed_before_an_error_stays(tmp_path):
    def fails(batch):
        if 6 in batch["rows"]:
            raise RuntimeError("out of coffee")
        return ask(batch)

    with pytest.raises(RuntimeError, match="coffee"):
        build(tmp_path, ask=fails)
    assert not list(tmp_path.glob("*.part"))
    # As after a kill: a file that is complete but not in the manifest, and one that is not complete.
    (tmp_path / "rows-00077.arrow").write_bytes(b"orphan")
    (tmp_path / "rows-00078.part").write_bytes(b"incomplete")
    cache = TeacherCache(tmp_path, "f")
    assert 0 < len(cache) < 10
    whole = build(tmp_path.parent / "whole")
    cache = build(tmp_path)
    assert not (tmp_path / "rows-00077.arrow").exists() and not list(tmp_path.glob("*.part"))
    for ours, theirs in zip(cache.read(KEYS[:10]), whole.read(KEYS[:10]), strict=True):
        assert ours.keys() == theirs.keys() == {"hidden_0", "logits"}
        assert all(np.array_equal(ours[name], theirs[name]) for name in ours)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 1)

    def fills(batch):
        # The system refuses to let files grow, as it does on a full disk.
        if 6 in batch["rows"]:
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
        return ask(batch)

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        with pytest.raises(OSError) as raised:
            build(tmp_path, ask=fills)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG and not list(tmp_path.glob("*.part"))
    cache = TeacherCache(tmp_path, "f")
    assert len(cache) == 6
    check(build(tmp_path))


def test_writers_take_turns(tmp_path):
    cache = TeacherCache(tmp_path, "f")
    order = []

    def other():
        with TeacherCache(tmp_path, "f").locked():
            order.append("other")

    thread = threading.Thread(target=other)
    with cache.locked():
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join()
    assert order == ["first", "other"]


def test_layouts_are_read_from_the_manifest(tmp_path):
    build(tmp_path)
    cache = TeacherCache(tmp_path, "f")
    assert cache.layout == LAYOUT

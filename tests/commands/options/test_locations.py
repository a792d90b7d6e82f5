"""Where data sets are looked for: a folder, the environment, a checkout, the Hub."""

import json

import pytest

from hf_mwp.commands.tasks.seq2seq_files import load_seq2seq
from hf_mwp.solver.data import DataError, load_mwp_dataset, sources
from tests.commands.hub.loopback_hub import Repository
from tests.tiny import tiny_rows


def lines(count, seed=0):
    rows = tiny_rows(count, seed)
    records = [
        {"id": r["id"], "original_text": r["text"], "equation": r["equation"], "ans": r["answer"]} for r in rows
    ]
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


FILES = {"train.jsonl": lines(12), "valid.jsonl": lines(4, 1), "test.jsonl": lines(5, 2)}
SIZES = {"train": 12, "validation": 4, "test": 5}


def sizes(*args, **kwargs):
    return {split: len(rows) for split, rows in load_mwp_dataset(*args, **kwargs).items()}


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """As in a wheel, which has no data beside it."""
    monkeypatch.setattr(sources, "_EXAMPLES_DIR", tmp_path / "lib" / "examples" / "data")
    monkeypatch.delenv(sources.DATA_DIR, raising=False)


def test_an_installed_package_says_where_data_are_to_be_had(installed, tmp_path, monkeypatch):
    with pytest.raises(DataError, match="math23k.*`data_dir`.*Hub.*HF_MWP_DATA_DIR.*https://github.com/SCNU203"):
        load_mwp_dataset("math23k")
    folder = tmp_path / "sets" / "math23k"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    assert sizes("math23k", data_dir=folder) == sizes("math23k", data_dir=folder.parent) == SIZES
    monkeypatch.setenv("HF_MWP_DATA_DIR", str(folder.parent))
    assert sizes("math23k") == SIZES


def test_files_of_another_dataset_are_not_taken_for_those_of_a_missing_one(installed, tmp_path):
    folder = tmp_path / "sets" / "math23k"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    for options in ({"extra_train": "math23k", "extra_exclude": "cm17k:test"}, {"extra_train": "ape210k:validation"}):
        with pytest.raises(DataError, match=r"(cm17k|ape210k) was not found"):
            load_mwp_dataset("math23k", folder.parent, **options)
    assert sizes("math23k", folder, extra_exclude="math23k:test")["train"] == 12


@pytest.mark.parametrize("place", ["", "data/", "math23k/"])
def test_a_repository_of_the_hub(installed, hub, place):
    repository = hub.repositories["datasets/user/problems"] = Repository(private=False)
    repository.commit("main", {"README.md": b"", "a.bin": b"0", **{place + n: c for n, c in FILES.items()}}, "data")
    assert sizes("math23k", data_dir="user/problems") == SIZES
    assert not hub.requested("GET", "a.bin")
    if place != "math23k/":
        assert sizes("user/problems") == SIZES
        assert sizes("math23k", data_dir="user/problems", extra_train="user/problems")["train"] == 12


def test_what_is_nowhere(installed, hub, monkeypatch, tmp_path):
    for call in ({"name": "user/none"}, {"name": "math23k", "data_dir": "user/none"}):
        with pytest.raises(DataError, match="user/none: .*Hub"):
            load_mwp_dataset(**call)
    hub.requests.clear()
    (tmp_path / "local" / "nones").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    for name in ("none.jsonl", "runs/none.jsonl", "./none", "a/b/c", "local/none"):
        with pytest.raises(DataError, match="datasets"):
            load_mwp_dataset(name)
    with pytest.raises(DataError, match="`data_dir` is not a folder"):
        load_mwp_dataset("math23k", data_dir=tmp_path / "none")
    with pytest.raises(DataError, match="local/none"):
        load_seq2seq("local/none", "en", "fr")
    assert not hub.requests, "what is no id is not looked for on the Hub"

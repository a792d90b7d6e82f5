"""Where datasets are looked for: a folder, the environment, a checkout, the Hub."""

import json

import pytest

from hf_mwp.commands.tasks.seq2seq_files import load_seq2seq
from hf_mwp.solver.data import DataError, load_mwp_dataset, sources
from tests.commands.hub.loopback_hub import Repository
from tests.slow_parameters import slow_after
from tests.tiny import tiny_rows


def math23k_lines(num_rows, seed=0):
    lines = []
    for row in tiny_rows(num_rows, seed):
        record = {"id": row["id"], "original_text": row["text"], "equation": row["equation"], "ans": row["answer"]}
        lines.append(json.dumps(record) + "\n")
    return "".join(lines).encode()


SIZES = {"train": 12, "validation": 4, "test": 5}
FILES = {
    "train.jsonl": math23k_lines(12),
    "valid.jsonl": math23k_lines(4, 1),
    "test.jsonl": math23k_lines(5, 2),
}


def sizes(*args, **kwargs):
    return {split: len(rows) for split, rows in load_mwp_dataset(*args, **kwargs).items()}


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The package has no data beside it, as in a wheel."""
    monkeypatch.setattr(sources, "_EXAMPLES_DIR", tmp_path / "lib" / "examples" / "data")
    monkeypatch.delenv(sources.DATA_DIR, raising=False)


@pytest.fixture
def math23k(tmp_path):
    folder = tmp_path / "sets" / "math23k"
    folder.mkdir(parents=True)
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    return folder


def test_dataset_is_found_in_the_given_folder_or_that_of_the_environment(installed, math23k, monkeypatch):
    with pytest.raises(DataError, match="math23k.*`data_dir`.*Hub.*HF_MWP_DATA_DIR.*https://github.com/SCNU203"):
        load_mwp_dataset("math23k")
    assert sizes("math23k", data_dir=math23k) == sizes("math23k", data_dir=math23k.parent) == SIZES
    monkeypatch.setenv("HF_MWP_DATA_DIR", str(math23k.parent))
    assert sizes("math23k") == SIZES


@pytest.mark.parametrize(
    "options", [{"extra_train": "math23k", "extra_exclude": "cm17k:test"}, {"extra_train": "ape210k:validation"}]
)
def test_missing_dataset_is_not_replaced_by_another_one(installed, math23k, options):
    with pytest.raises(DataError, match=r"(cm17k|ape210k) was not found"):
        load_mwp_dataset("math23k", math23k.parent, **options)
    assert sizes("math23k", math23k, extra_exclude="math23k:test")["train"] == 12


@pytest.mark.parametrize("folder", slow_after(1, ["", "data/", "math23k/"]))
def test_repository_of_the_hub_is_loaded(installed, hub, folder):
    files = {"README.md": b"", "a.bin": b"0"} | {folder + name: content for name, content in FILES.items()}
    repository = Repository(private=False)
    repository.commit("main", files, "data")
    hub.repositories["datasets/user/problems"] = repository
    assert sizes("math23k", data_dir="user/problems") == SIZES
    assert not hub.requested("GET", "a.bin")
    if folder != "math23k/":
        assert sizes("user/problems") == SIZES
        assert sizes("math23k", data_dir="user/problems", extra_train="user/problems")["train"] == 12


@pytest.mark.parametrize("options", [{"name": "user/none"}, {"name": "math23k", "data_dir": "user/none"}])
def test_missing_repository_of_the_hub_is_named(installed, hub, options):
    with pytest.raises(DataError, match="user/none: .*Hub"):
        load_mwp_dataset(**options)


@pytest.mark.parametrize("name", ["none.jsonl", "runs/none.jsonl", "./none", "a/b/c", "local/none"])
def test_name_that_is_no_id_is_not_looked_for_on_the_hub(installed, hub, monkeypatch, tmp_path, name):
    (tmp_path / "local" / "nones").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match="datasets"):
        load_mwp_dataset(name)
    with pytest.raises(DataError, match=name.rpartition("/")[2]):
        load_seq2seq(name, "en", "fr")
    assert not hub.requests


def test_missing_data_folder_is_named(tmp_path):
    with pytest.raises(DataError, match="`data_dir` is not a folder"):
        load_mwp_dataset("math23k", data_dir=tmp_path / "none")

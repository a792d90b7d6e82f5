"""Pairs of texts from each type of file, and the errors that name file, line and field."""

import gzip
import json
import re

import pytest

from hf_mwp.commands.tasks.seq2seq_files import load_seq2seq, locate_pairs
from hf_mwp.solver.data import DataError


PAIRS = [("a dog .", "un chien ."), ("two cats .", "deux chats ."), ("a man .", "un homme .")]
LINES = {
    "train.jsonl": [json.dumps({"en": en, "fr": fr}) for en, fr in PAIRS],
    "train.json": ["[" + ",".join(json.dumps({"translation": {"en": en, "fr": fr}}) for en, fr in PAIRS) + "]"],
    "train.csv": ["en,fr", *(f"{en},{fr}" for en, fr in PAIRS)],
    "train.tsv": ["en\tfr", *(f"{en}\t{fr}" for en, fr in PAIRS), ""],
}


def write(path, lines):
    text = "".join(f"{line}\n" for line in lines)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def pairs(rows):
    return [(row["text"], row["target"]) for row in rows]


@pytest.mark.parametrize("name", LINES)
@pytest.mark.parametrize("ending", ["", ".gz"])
def test_each_type_of_file_is_read(name, ending, tmp_path):
    data = load_seq2seq(write(tmp_path / f"{name}{ending}", LINES[name]), "en", "fr", validation_fraction=0)
    assert list(data) == ["train"]
    assert pairs(data["train"]) == PAIRS
    first_line = 2 if name in ("train.csv", "train.tsv") else 1
    assert data["train"]["id"][0] == f"train-{first_line}"


def test_columns_of_a_file_without_a_header_have_numbers(tmp_path):
    path = write(tmp_path / "test_2016.tsv", LINES["train.tsv"][1:])
    assert pairs(load_seq2seq(path, "2", "1")["test"]) == [(fr, en) for en, fr in PAIRS]


def test_files_of_a_folder_are_splits(tmp_path):
    for name in ("train", "val", "test_2016_flickr"):
        write(tmp_path / f"{name}.tsv", LINES["train.tsv"])
    sizes = {split: len(rows) for split, rows in load_seq2seq(tmp_path, "en", "fr").items()}
    assert sizes == {"train": 3, "validation": 3, "test": 3}
    write(tmp_path / "test_2017_flickr.tsv", LINES["train.tsv"])
    with pytest.raises(DataError, match="test_2016_flickr.tsv, test_2017_flickr.tsv"):
        load_seq2seq(tmp_path, "en", "fr")


def test_parallel_files_are_read_and_a_share_is_held_out(tmp_path):
    write(tmp_path / "train.en", [en for en, _ in PAIRS])
    write(tmp_path / "train.fr", [fr for _, fr in PAIRS])
    data = load_seq2seq(tmp_path, "en", "fr", validation_fraction=0.34)
    assert len(data["train"]) == 2
    assert sorted(pairs(data["train"]) + pairs(data["validation"])) == sorted(PAIRS)
    write(tmp_path / "train.fr", ["un chien ."])
    with pytest.raises(DataError, match=r"train\.en, line 2: "):
        load_seq2seq(tmp_path, "en", "fr")
    (tmp_path / "train.fr").unlink()
    with pytest.raises(DataError, match=r"train\.fr: "):
        load_seq2seq(tmp_path, "en", "fr")


@pytest.mark.parametrize(
    ("name", "lines", "message"),
    [
        ("train.jsonl", ['{"en": "a", "fr": "b"}', '{"en": "a"}'], "line 2, field 'fr': .* en"),
        ("train.jsonl", ['{"en": "", "fr": "b"}'], "line 1, field 'en': .*empty"),
        ("train.jsonl", ['{"en": true, "fr": "b"}'], "line 1, field 'en': .*string.* True"),
        ("train.jsonl", ['{"en": null, "fr": "b"}'], "line 1, field 'en': .*null"),
        ("train.jsonl", ['{"en": "a"'], "line 1: .*JSON"),
        ("train.jsonl", [], "no rows"),
        ("train.tsv", ["a\tb"], "line 1, field 'en': .*columns.* 1, 2"),
        ("train.tsv", ["en\tfr", "a"], "line 2: .*2 fields.* 1"),
        ("train.txt", ["a"], r"\.jsonl"),
    ],
)
def test_damaged_files_are_named_with_line_and_field(name, lines, message, tmp_path):
    path = write(tmp_path / name, lines)
    with pytest.raises(DataError, match=re.escape(str(path)) + ".*" + message):
        load_seq2seq(path, "en", "fr")


def test_text_that_is_not_utf_8_is_named_with_its_line(tmp_path):
    path = tmp_path / "train.tsv"
    path.write_bytes(b"a dog\tun chien\na pupil\tun \xe9l\xe8ve\n")
    with pytest.raises(DataError, match=r"train\.tsv, line 2, field '2': .*UTF-8"):
        load_seq2seq(path, "1", "2", validation_fraction=0)


def test_numbers_are_texts(tmp_path):
    path = write(tmp_path / "train.jsonl", ['{"text": "one half", "answer": 0.5}', '{"text": "none", "answer": 0}'])
    data = load_seq2seq(path, "text", "answer", validation_fraction=0)
    assert pairs(data["train"]) == [("one half", "0.5"), ("none", "0")]


def test_missing_files_are_named(tmp_path):
    with pytest.raises(DataError, match="nowhere.tsv: "):
        load_seq2seq("nowhere.tsv", "en", "fr")
    with pytest.raises(DataError, match="no train, validation or test file"):
        load_seq2seq(tmp_path, "en", "fr")
    assert locate_pairs("opus_books:en-fr") is None


def test_dataset_of_the_hub_is_loaded(monkeypatch):
    calls = []

    def load_dataset(*args):
        calls.append(args)
        rows = [{"translation": {"en": en, "fr": fr}} for en, fr in PAIRS]
        return {"train": rows, "validation": rows[:1], "other": rows}

    def fail(name):
        raise ConnectionError("offline")

    monkeypatch.setattr("datasets.load_dataset", load_dataset)
    data = load_seq2seq("opus_books:en-fr", "en", "fr")
    assert calls == [("opus_books", "en-fr")]
    assert pairs(data["train"]) == PAIRS
    assert len(data["validation"]) == 1
    monkeypatch.setattr("datasets.load_dataset", fail)
    with pytest.raises(DataError, match="opus: .*Hub .*offline"):
        load_seq2seq("opus", "en", "fr")

import dataclasses

import pytest

from hf_mwp.solver.corpus import PreTrainingEncoder, encode_corpus
from hf_mwp.solver.data import DataError
from hf_mwp.utils.row_store import StoreError
from tests.pretraining import TAGS, text_processor, tiny_pairs
from tests.slow_parameters import slow_after
from tests.solver.corpus.tagging import stored_files


def encoder(tags=TAGS, tagger="jieba", **fields):
    return PreTrainingEncoder(text_processor(**fields), tags, tagger)


def test_rows_are_those_of_the_encoder(tmp_path):
    pairs = tiny_pairs(23)
    calls = []
    dataset = encode_corpus(pairs, encoder(), tmp_path, batch_size=10, progress=lambda *args: calls.append(args))
    texts, words = zip(*pairs, strict=True)
    expected = encoder().encode(texts, words)
    assert set(dataset.column_names) == set(expected)
    for row, encoded in enumerate(dataset):
        for name, values in expected.items():
            assert encoded[name] == pytest.approx(values[row]), name
    assert calls == [(10, 23), (20, 23), (23, 23)]
    assert [path.suffix for path in stored_files(tmp_path)] == [".arrow"]


def test_corpus_without_tags_has_no_labels(tmp_path):
    dataset = encode_corpus([("小明有5个", None)], PreTrainingEncoder(text_processor()), tmp_path)
    assert "pos_labels" not in dataset.column_names
    assert dataset["length"][:] == [7]


def test_corpus_is_encoded_once(tmp_path):
    encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    calls = []
    encode_corpus(tiny_pairs(9), encoder(), tmp_path, progress=lambda *args: calls.append(args))
    assert not calls


def test_damaged_file_is_encoded_again(tmp_path, caplog):
    encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    (path,) = stored_files(tmp_path)
    content = path.read_bytes()
    path.write_bytes(content[:-60] + b"?" + content[-59:])
    dataset = encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    assert len(dataset) == 9
    assert path.read_bytes() == content
    assert str(path) in caplog.text
    (path.parent / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match="damaged.*'format'.*Remove"):
        encode_corpus(tiny_pairs(9), encoder(), tmp_path)


def with_another_tag(pairs):
    text, words = pairs[0]
    return [(text, [dataclasses.replace(words[0], tag="q"), *words[1:]]), *pairs[1:]]


@pytest.mark.parametrize(
    ("pairs", "fields"),
    slow_after(
        3,
        [
            (tiny_pairs(8), {}),
            (with_another_tag(tiny_pairs(9)), {}),
            (tiny_pairs(9), {"indexed_numbers": True}),
            (tiny_pairs(9), {"max_length": 8}),
            (tiny_pairs(9), {"tags": [*TAGS, "z"]}),
            (tiny_pairs(9), {"tagger": "ltp"}),
        ],
    ),
    ids=["text", "tag", "indexed_numbers", "max_length", "tags", "tagger"],
)
def test_any_other_input_makes_another_file(pairs, fields, tmp_path):
    encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    encode_corpus(pairs, encoder(**fields), tmp_path)
    assert len(stored_files(tmp_path)) == 2


def test_other_tokens_and_keywords_make_another_file(tmp_path, monkeypatch):
    encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    with_token = encoder()
    with_token.processor.tokenizer.add_tokens(["苹果"])
    encode_corpus(tiny_pairs(9), with_token, tmp_path)
    monkeypatch.setattr("hf_mwp.solver.corpus.pretraining_dataset.read_keywords", lambda language: {})
    encode_corpus(tiny_pairs(9), encoder(), tmp_path)
    assert len(stored_files(tmp_path)) == 3


def test_empty_corpus_is_refused(tmp_path):
    with pytest.raises(DataError, match="empty"):
        encode_corpus([], encoder(), tmp_path)
    assert not stored_files(tmp_path)

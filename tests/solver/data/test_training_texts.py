import json

import numpy as np
import pytest
from safetensors import safe_open

from hf_mwp.solver.corpus.pretraining_texts import _open, masked_digest
from hf_mwp.solver.data import DataError, TrainingTexts
from hf_mwp.solver.data.training_texts import NOTHING, digest


def all_texts(sources, data_dir=None):
    """All texts of sources of pretraining, duplicates included."""
    return _open(sources, ("train",), data_dir)


TEXTS = ["小明有4个苹果", "小明有5个苹果", "小明有 ５个苹果。", "求面积", "。"]


def test_texts_are_known_whatever_their_numerals():
    texts = TrainingTexts.from_texts(TEXTS, ["a.txt"])
    assert (len(texts.exact), len(texts.masked), len(texts), texts.complete) == (3, 2, 3, True)
    assert texts.seen("小明有五个苹果？") == (True, True)
    assert texts.seen("小明有6个苹果") == (False, True)
    assert texts.seen("求周长") == (False, False)
    assert texts.seen("。") == TrainingTexts().seen("求面积") == (False, False)


def test_digests_are_the_same_everywhere():
    # The first bytes of blake2b with a digest of 4 bytes, little endian.
    assert digest("小明有#个苹果") == 0xD7970B59
    texts = TrainingTexts.from_texts(TEXTS)
    for column in (texts.exact, texts.masked):
        assert column.dtype == np.uint32 and (np.diff(column.astype(np.int64)) > 0).all()


def test_a_union_knows_what_its_parts_know():
    one = TrainingTexts.from_texts(TEXTS[:2], ["a.txt", "b.txt"])
    other = TrainingTexts(
        *(getattr(TrainingTexts.from_texts(TEXTS[1:]), name) for name in ("exact", "masked")), ("b.txt",), ("bert",)
    )
    both = one | other
    assert np.array_equal(both.exact, TrainingTexts.from_texts(TEXTS).exact)
    assert (both.sources, both.unknown, both.complete) == (("a.txt", "b.txt"), ("bert",), False)
    assert np.array_equal((one | TrainingTexts()).masked, one.masked)


def test_a_folder_keeps_them(tmp_path):
    texts = TrainingTexts.from_texts(TEXTS, ["math23k (public), train"]) | TrainingTexts(unknown=("bert",))
    texts.save(tmp_path / "model")
    (path,) = (tmp_path / "model").iterdir()
    assert path.name == "training_texts.safetensors"
    loaded = TrainingTexts.load(tmp_path / "model")
    assert np.array_equal(loaded.exact, texts.exact) and np.array_equal(loaded.masked, texts.masked)
    assert (loaded.sources, loaded.unknown) == (texts.sources, texts.unknown)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert (metadata["rule"], metadata["texts"], metadata["not_known"]) == ("1", "3", '["bert"]')
    assert metadata["false_matches"].startswith("7.0e-10")  # 3 / 2**32
    TrainingTexts().save(tmp_path / "model")
    assert len(TrainingTexts.load(tmp_path / "model")) == len(NOTHING) == 0


def test_no_file_says_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert TrainingTexts.load(tmp_path) is None
    for name in (tmp_path / "gone", "gone", "runs/of/before", "hfl/some-encoder"):
        assert TrainingTexts.load(name) is None


@pytest.mark.parametrize("damage", ["cut", "other", "version"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, damage):
    path = tmp_path / TrainingTexts.file_name
    if damage == "version":
        with monkeypatch.context() as patch:
            patch.setattr("hf_mwp.solver.data.training_texts.VERSION", 9)
            TrainingTexts.from_texts(TEXTS).save(tmp_path)
    else:
        TrainingTexts.from_texts(TEXTS).save(tmp_path)
        path.write_bytes(path.read_bytes()[:40] if damage == "cut" else b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(DataError, match="training_texts.safetensors: .*from_texts"):
        TrainingTexts.load(tmp_path)


def test_sources_are_those_of_pretraining(tmp_path):
    (tmp_path / "a.txt").write_text("\n".join(TEXTS), encoding="utf-8")
    (tmp_path / "b.jsonl").write_text(json.dumps({"question": "求周长", "answer": 3}), encoding="utf-8")
    sources = [tmp_path / "a.txt", tmp_path / "b.jsonl"]
    # Also those that differ in their numbers alone.
    assert list(all_texts(sources)) == [*TEXTS, "求周长"]
    assert len(TrainingTexts.from_texts(all_texts(sources))) == 4
    assert len(TrainingTexts.from_texts(all_texts(tmp_path / "a.txt"))) == 3
    with pytest.raises(DataError, match=r"nothing\.txt: .*ape210k"):
        all_texts(["nothing.txt"])


@pytest.fixture(scope="module")
def of_math23k():
    return TrainingTexts.from_texts(all_texts("math23k"), ["math23k"])


def test_math23k(of_math23k):
    train = of_math23k
    assert (len(train), train.sources) == (21_140, ("math23k",))
    seen = {part: [train.seen(text) for text in all_texts(f"math23k:{part}")] for part in ("validation", "test")}
    # Three problems of either part are training problems, those of the test split but for `？` and `．`.
    assert [sum(exact for exact, _ in part) for part in seen.values()] == [3, 3]
    assert [sum(masked for _, masked in part) for part in seen.values()] == [86, 78]


@pytest.mark.slow
@pytest.mark.shared_data
def test_what_a_literal_comparison_lets_through(shared_data):
    held_out = {masked_digest(text, "zh") for part in ("validation", "test") for text in all_texts(f"math23k:{part}")}
    let_through = {}
    for source in (shared_data / "zh_extra" / "ccf_math_train.jsonl.gz", "ape210k:validation"):
        texts = (text for text in all_texts(source, shared_data) if masked_digest(text, "zh") not in held_out)
        let_through[source] = TrainingTexts.from_texts(texts)
    ccf, ape = let_through.values()
    for part, expected in (("test", (24, 3)), ("validation", (18, 0))):
        texts = list(all_texts(f"math23k:{part}"))
        assert tuple(sum(each.seen(text)[0] for text in texts) for each in (ccf, ape)) == expected
    corpus = TrainingTexts.from_texts(all_texts("examples/data/corpus/mlm_corpus.txt.gz"))
    for part in ("test", "validation"):
        assert not any(corpus.seen(text)[0] for text in all_texts(f"math23k:{part}"))


@pytest.mark.shared_data
def test_ape_clean_has_problems_of_math23k(shared_data, of_math23k):
    for name in ("ape_clean", "ape210k"):
        seen = [of_math23k.seen(text) for text in all_texts(f"{name}:test", shared_data)]
        assert [sum(column) for column in zip(*seen, strict=True)] == [206, 236]

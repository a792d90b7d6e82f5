import numpy as np
import pytest
from safetensors import safe_open

from hf_mwp.solver.corpus.pretraining_texts import _open
from hf_mwp.solver.data import DataError, TrainingTexts
from hf_mwp.solver.data.training_texts import digest


TEXTS = ["小明有4个苹果", "小明有5个苹果", "小明有 ５个苹果。", "求面积", "。"]


def all_texts(sources, data_dir=None):
    """All texts of sources of pretraining, duplicates included."""
    return _open(sources, ("train",), data_dir)


def num_seen(training_texts, source, data_dir=None) -> tuple[int, int]:
    """The number of texts of a source that are training texts, and that are if numbers are ignored."""
    seen = [training_texts.seen(text) for text in all_texts(source, data_dir)]
    return sum(exact for exact, _ in seen), sum(masked for _, masked in seen)


def test_texts_are_known_whatever_their_numerals():
    texts = TrainingTexts.from_texts(TEXTS, ["a.txt"])
    assert (len(texts.exact), len(texts.masked), len(texts)) == (3, 2, 3)
    assert texts.complete
    assert texts.seen("小明有五个苹果？") == (True, True)
    assert texts.seen("小明有6个苹果") == (False, True)
    assert texts.seen("求周长") == (False, False)
    assert texts.seen("。") == (False, False)
    assert TrainingTexts().seen("求面积") == (False, False)


def test_digests_are_the_same_everywhere():
    # The first bytes of blake2b with a digest of 4 bytes, little endian.
    assert digest("小明有#个苹果") == 0xD7970B59
    texts = TrainingTexts.from_texts(TEXTS)
    for digests in (texts.exact, texts.masked):
        assert digests.dtype == np.uint32
        assert (np.diff(digests.astype(np.int64)) > 0).all()


def test_union_knows_the_texts_of_both():
    first = TrainingTexts.from_texts(TEXTS[:2], ["a.txt", "b.txt"])
    second = TrainingTexts.from_texts(TEXTS[1:], ["b.txt"])
    union = first | second | TrainingTexts(unknown=("bert",))
    expected = TrainingTexts.from_texts(TEXTS)
    assert np.array_equal(union.exact, expected.exact)
    assert np.array_equal(union.masked, expected.masked)
    assert union.sources == ("a.txt", "b.txt")
    assert union.unknown == ("bert",)
    assert not union.complete


def test_texts_are_saved_in_a_folder(tmp_path):
    texts = TrainingTexts.from_texts(TEXTS, ["math23k (public), train"]) | TrainingTexts(unknown=("bert",))
    texts.save(tmp_path / "model")
    (path,) = (tmp_path / "model").iterdir()
    assert path.name == "training_texts.safetensors"
    loaded = TrainingTexts.load(tmp_path / "model")
    assert np.array_equal(loaded.exact, texts.exact)
    assert np.array_equal(loaded.masked, texts.masked)
    assert loaded.sources == texts.sources
    assert loaded.unknown == texts.unknown
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    assert (metadata["rule"], metadata["texts"], metadata["not_known"]) == ("1", "3", '["bert"]')
    assert metadata["false_matches"].startswith("7.0e-10")  # 3 / 2**32
    TrainingTexts().save(tmp_path / "model")
    assert len(TrainingTexts.load(tmp_path / "model")) == 0


def test_without_a_file_there_are_no_texts(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in (tmp_path, tmp_path / "missing", "missing", "runs/of/before", "hfl/some-encoder"):
        assert TrainingTexts.load(name) is None


@pytest.mark.parametrize("damage", ["truncated", "pointer", "version"])
def test_unreadable_file_is_named(tmp_path, monkeypatch, damage):
    path = tmp_path / TrainingTexts.file_name
    if damage == "version":
        monkeypatch.setattr("hf_mwp.solver.data.training_texts.VERSION", 9)
    TrainingTexts.from_texts(TEXTS).save(tmp_path)
    monkeypatch.undo()
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:40])
    elif damage == "pointer":
        path.write_bytes(b"version https://git-lfs.github.com/spec/v1")
    with pytest.raises(DataError, match="training_texts.safetensors: .*from_texts"):
        TrainingTexts.load(tmp_path)


@pytest.fixture(scope="module")
def math23k_texts():
    return TrainingTexts.from_texts(all_texts("math23k"), ["math23k"])


@pytest.mark.slow
def test_math23k(math23k_texts):
    assert len(math23k_texts) == 21_140
    assert math23k_texts.sources == ("math23k",)
    # Three problems of either split are training problems, those of the test split but for `？` and `．`.
    assert num_seen(math23k_texts, "math23k:validation") == (3, 86)
    assert num_seen(math23k_texts, "math23k:test") == (3, 78)


@pytest.mark.slow
@pytest.mark.shared_data
@pytest.mark.parametrize("name", ["ape_clean", "ape210k"])
def test_ape_has_problems_of_math23k(shared_data, math23k_texts, name):
    assert num_seen(math23k_texts, f"{name}:test", shared_data) == (206, 236)

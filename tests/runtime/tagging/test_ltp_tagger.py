"""LTP's real classes, with small models made here."""

import json
import pickle
import shutil
import sys

import pytest

from hf_mwp.runtime.problems import LtpTagger, PosTagger, ProblemError, load_tagger
from tests.damage import change_fields
from tests.runtime.tagging.ltp_models import make_legacy_model, make_neural_model
from tests.runtime.tagging.tagged_texts import assert_words_are_the_texts, tag_text, tagged


@pytest.fixture(scope="module")
def legacy_folder(tmp_path_factory):
    pytest.importorskip("ltp", reason='LTP is an optional extra: pip install "hf-mwp[ltp]"')
    return make_legacy_model(tmp_path_factory.mktemp("ltp") / "legacy")


@pytest.fixture(scope="module")
def neural_folder(tmp_path_factory):
    pytest.importorskip("ltp", reason='LTP is an optional extra: pip install "hf-mwp[ltp]"')
    return make_neural_model(tmp_path_factory.mktemp("ltp") / "neural")


@pytest.fixture(params=["legacy", "neural"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


def test_legacy_model_tags(legacy_folder):
    tagger = load_tagger(f"ltp:{legacy_folder}")
    assert tag_text(tagger, "小明有80个水果，相距(3/8)千米？") == (
        "小明/nh 有/v 80/m 个/q 水果/n ，/wp 相距/v (3/8)/m 千米/q ？/wp"
    )


def test_neural_model_tags_as_its_own_pipeline_does(neural_folder):
    from ltp import LTP

    texts = ["小明有个苹果，一共有多少个水果？", "甲乙两地相距千米。"]
    reference = LTP(str(neural_folder))
    reference.tokenizer.batch_encode_plus = reference.tokenizer.__call__
    result = reference.pipeline(texts, tasks=["cws", "pos"])
    batch = LtpTagger(neural_folder).tag(texts)
    tags = set()
    for words, reference_words, reference_tags in zip(batch, result.cws, result.pos, strict=True):
        assert [word.word for word in words] == list(reference_words)
        assert [word.tag for word in words] == list(reference_tags)
        tags.update(reference_tags)
    assert len(tags) > 1


def test_words_are_the_texts_without_white_space(folder):
    assert_words_are_the_texts(LtpTagger(folder))


def test_long_texts_are_cut_after_sentences(legacy_folder):
    sentence = "小明有4个苹果，相距80千米。"
    tagger = LtpTagger(legacy_folder)
    words = tag_text(tagger, sentence)
    assert tag_text(tagger, sentence * 100) == " ".join([words] * 100)


def test_fingerprint_changes_with_the_model_files_only(folder, tmp_path, capsys):
    tagger = LtpTagger(folder)
    assert isinstance(tagger, PosTagger)
    assert tagger.name == "ltp"
    assert capsys.readouterr().out == ""
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "README.md").write_text("notes")
    assert LtpTagger(copy).fingerprint == tagger.fingerprint
    if (copy / "pos_model.bin").exists():
        shutil.copy(copy / "pos_model.bin", copy / "other.bin")
        change_fields(copy / "config.json", tasks={"cws": "cws_model.bin", "pos": "other.bin"})
    else:
        (copy / "vocab.txt").write_text((copy / "vocab.txt").read_text("utf-8") + "\n梨", "utf-8")
    assert LtpTagger(copy).fingerprint != tagger.fingerprint


def test_pickled_tagger_is_loaded_again(folder):
    tagger = LtpTagger(folder)
    copy = pickle.loads(pickle.dumps(tagger))  # noqa: S301 (our own bytes)
    assert copy.fingerprint == tagger.fingerprint
    assert tagged(copy.tag(["小明有4个苹果"])[0]) == tag_text(tagger, "小明有4个苹果")


@pytest.fixture
def empty_model(tmp_path):
    """A folder with the files of a legacy model, which are empty."""
    tasks = {"cws": "cws_model.bin", "pos": "pos_model.bin"}
    (tmp_path / "config.json").write_text(json.dumps({"nerual": False, "tasks": tasks}))
    for file in tasks.values():
        (tmp_path / file).touch()
    return tmp_path


def test_missing_package_is_named_with_its_licence(monkeypatch, empty_model):
    monkeypatch.setitem(sys.modules, "ltp", None)
    with pytest.raises(ProblemError, match=r"hf-mwp\[ltp\].*commercial.*jieba"):
        LtpTagger(empty_model)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "JSON.*line 1"),
        ('{"model_type": "bert"}', "'nerual'"),
        ('{"nerual": false, "tasks": {"cws": "cws_model.bin"}}', "'pos'"),
        ('{"nerual": false, "tasks": {"cws": "cws_model.bin", "pos": "other.bin"}}', "other.bin"),
    ],
)
def test_folder_with_another_config_is_refused(empty_model, content, message):
    (empty_model / "config.json").write_text(content)
    with pytest.raises(ProblemError, match=message) as error:
        load_tagger(f"ltp:{empty_model}")
    assert str(empty_model) in str(error.value)


def test_damaged_model_is_refused(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in copy.glob("*.bin"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ProblemError, match="copy .*damaged"):
        LtpTagger(copy)


# The tests are offline, so the Hub gives nothing.
@pytest.mark.parametrize("source", ["/no/such/folder", "no/such/folder", __file__, "LTP/no-such-model", "not a name"])
def test_source_that_is_neither_a_folder_nor_on_the_hub_is_named(source):
    with pytest.raises(ProblemError, match=f"{source} .*folder.* LTP/small"):
        load_tagger(f"ltp:{source}")


def test_hub_model_is_downloaded_as_a_snapshot(legacy_folder, monkeypatch):
    downloads = []

    def snapshot_download(repo_id, revision=None, allow_patterns=None):
        downloads.append((repo_id, revision))
        return str(legacy_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert load_tagger("ltp:LTP/legacy@v1").fingerprint == LtpTagger(legacy_folder).fingerprint
    LtpTagger("LTP/legacy")
    assert downloads == [("LTP/legacy", "v1"), ("LTP/legacy", None)]

"""LTP's real classes, with small models made here."""

import json
import pickle
import shutil
import sys

import pytest

from hf_mwp.runtime.problems import LtpTagger, PosTagger, ProblemError, find_numbers, load_tagger
from hf_mwp.solver.corpus import tag_corpus
from tests.runtime.tagging.ltp_models import make_legacy_model, make_neural_model


@pytest.fixture(scope="session")
def legacy_folder(tmp_path_factory):
    pytest.importorskip("ltp", reason='LTP is an optional extra: pip install "hf-mwp[ltp]"')
    return make_legacy_model(tmp_path_factory.mktemp("ltp") / "legacy")


@pytest.fixture(scope="session")
def neural_folder(tmp_path_factory):
    pytest.importorskip("ltp", reason='LTP is an optional extra: pip install "hf-mwp[ltp]"')
    return make_neural_model(tmp_path_factory.mktemp("ltp") / "neural")


@pytest.fixture(params=["legacy", "neural"])
def folder(request):
    return request.getfixturevalue(f"{request.param}_folder")


def pairs(tagger, text):
    return [(word.word, word.tag) for word in tagger.tag([text])[0]]


def test_the_legacy_model_tags(legacy_folder):
    assert pairs(load_tagger(f"ltp:{legacy_folder}"), "小明有80个水果，相距(3/8)千米？") == [
        ("小明", "nh"),
        ("有", "v"),
        ("80", "m"),
        ("个", "q"),
        ("水果", "n"),
        ("，", "wp"),
        ("相距", "v"),
        ("(3/8)", "m"),
        ("千米", "q"),
        ("？", "wp"),
    ]


def test_the_neural_model_tags_as_its_own_pipeline_does(neural_folder):
    from ltp import LTP

    texts = ["小明有个苹果，一共有多少个水果？", "甲乙两地相距千米。"]
    tagger = LtpTagger(neural_folder)
    reference = LTP(str(neural_folder))
    reference.tokenizer.batch_encode_plus = reference.tokenizer.__call__
    result = reference.pipeline(texts, tasks=["cws", "pos"])
    expected = [list(zip(words, tags, strict=True)) for words, tags in zip(result.cws, result.pos, strict=True)]
    assert [pairs(tagger, text) for text in texts] == expected
    assert len({tag for words in expected for _, tag in words}) > 1
    batch = tagger.tag(texts)
    assert [[(word.word, word.tag) for word in words] for words in batch] == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "　小明 有\t4 个\n苹果．\r\n",
        "买5kg，1(3/4)千米temp_a  3,409 元",
        "😀𠀀好，㎡²",
        "１２３４ＡＢＣ，２５％",
        "小明有4个苹果，" * 100,
        "苹果" * 600,
        "1234" * 200,
    ],
)
def test_words_are_the_text_but_for_white_space(folder, text):
    (words,) = LtpTagger(folder).tag([text])
    assert all(text[word.start : word.end] == word.word for word in words)
    assert all(left.end <= right.start for left, right in zip(words, words[1:], strict=False))
    assert "".join(word.word for word in words) == "".join(text.split())
    spans = {(word.start, word.end) for word in words}
    assert all((number.start, number.end) in spans for number in find_numbers(text))


def test_batches(folder):
    tagger = LtpTagger(folder)
    texts = ["小明有4个苹果", "", "  ", "相距80千米"]
    assert tagger.tag(texts) == [tagger.tag([text])[0] for text in texts]
    assert tagger.tag(texts)[1] == tagger.tag(texts)[2] == []
    assert tagger.tag([]) == tagger.tag([""])[0] == []


def test_long_texts_are_cut_behind_sentences(legacy_folder):
    sentence = "小明有4个苹果，相距80千米。"
    tagger = LtpTagger(legacy_folder)
    one = pairs(tagger, sentence)
    assert pairs(tagger, sentence * 100) == one * 100


def test_protocol_and_fingerprint(folder, tmp_path, capsys):
    tagger = LtpTagger(folder)
    assert isinstance(tagger, PosTagger) and tagger.name == "ltp"
    assert capsys.readouterr().out == ""
    copy = shutil.copytree(folder, tmp_path / "copy")
    assert LtpTagger(copy).fingerprint == tagger.fingerprint
    (copy / "README.md").write_text("notes")
    assert LtpTagger(copy).fingerprint == tagger.fingerprint
    model = next(copy.glob("p*_model.bin"))
    if model.name == "pos_model.bin":
        shutil.copy(model, copy / "other.bin")
        config = json.loads((copy / "config.json").read_text())
        config["tasks"]["pos"] = "other.bin"
        (copy / "config.json").write_text(json.dumps(config))
    else:
        import torch

        state = torch.load(model)
        torch.save({name: value + 1 for name, value in state.items()}, model)
    assert LtpTagger(copy).fingerprint != tagger.fingerprint


def test_it_travels_to_other_processes(folder):
    tagger = LtpTagger(folder)
    copy = pickle.loads(pickle.dumps(tagger))  # noqa: S301 (our own bytes)
    assert copy.fingerprint == tagger.fingerprint
    assert copy.tag(["小明有4个苹果"]) == tagger.tag(["小明有4个苹果"])


def test_a_corpus(legacy_folder, tmp_path):
    corpus = tag_corpus(["小明有4个苹果", "用去(3/8)吨水泥"], LtpTagger(legacy_folder), tmp_path)
    assert corpus.tagger == "ltp" and corpus.tags == ["m", "n", "nh", "q", "v"]
    assert corpus[1][1][2].word == "(3/8)"


def test_ltp_missing(monkeypatch, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"nerual": False, "tasks": {"cws": "c.bin", "pos": "p.bin"}}))
    for name in ("c.bin", "p.bin"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, "ltp", None)
    with pytest.raises(ProblemError, match=r"pip install \"hf-mwp\[ltp\]\".*commercial.*jieba"):
        LtpTagger(tmp_path)


def config_missing(folder):
    (folder / "config.json").unlink()


def config_damaged(folder):
    (folder / "config.json").write_text("{")


def config_of_another_model(folder):
    (folder / "config.json").write_text('{"model_type": "bert"}')


def config_without_tags(folder):
    (folder / "config.json").write_text('{"nerual": false, "tasks": {"cws": "cws_model.bin"}}')


def file_missing(folder):
    (folder / "pos_model.bin").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (config_missing, "config.json"),
        (config_damaged, "JSON.*line 1"),
        (config_of_another_model, "'nerual'"),
        (config_without_tags, "'pos'"),
        (file_missing, "pos_model.bin"),
    ],
)
def test_a_folder_that_is_no_model(tmp_path, damage, message):
    (tmp_path / "config.json").write_text(
        '{"nerual": false, "tasks": {"cws": "cws_model.bin", "pos": "pos_model.bin"}}'
    )
    for task in ("cws", "pos"):
        (tmp_path / f"{task}_model.bin").write_bytes(b"")
    damage(tmp_path)
    with pytest.raises(ProblemError, match=message) as caught:
        load_tagger(f"ltp:{tmp_path}")
    assert str(tmp_path) in str(caught.value)


def test_a_damaged_model(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    for path in copy.glob("*.bin"):
        path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ProblemError, match="copy .*damaged"):
        LtpTagger(copy)


@pytest.mark.parametrize("source", ["/no/such/folder", "./no_such_folder", "no/such/folder"])
def test_no_such_folder(source):
    with pytest.raises(ProblemError, match=f"{source} .*folder.* LTP/small"):
        load_tagger(f"ltp:{source}")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "model").write_text("")
    with pytest.raises(ProblemError, match="model .*folder.* LTP/small"):
        load_tagger(f"ltp:{tmp_path / 'model'}")


@pytest.mark.parametrize("source", ["LTP/no-such-model", "not a name"])
def test_the_hub_does_not_give_it(source):
    # The tests are offline, so the Hub gives nothing.
    with pytest.raises(ProblemError, match=f"{source} .*folder.* Hub"):
        load_tagger(f"ltp:{source}")


def test_a_hub_id_is_downloaded_as_a_snapshot(legacy_folder, monkeypatch):
    calls = []

    def snapshot_download(repo_id, revision=None, allow_patterns=None):
        calls.append((repo_id, revision))
        return str(legacy_folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot_download)
    assert load_tagger("ltp:LTP/legacy@v1").fingerprint == LtpTagger(legacy_folder).fingerprint
    LtpTagger("LTP/legacy")
    assert calls == [("LTP/legacy", "v1"), ("LTP/legacy", None)]

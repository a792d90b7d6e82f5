import errno
import resource

import pytest

from hf_mwp.solver.corpus import PreTrainingEncoder, encode_corpus
from hf_mwp.solver.data import DataError
from hf_mwp.utils.row_store import StoreError
from tests.pretraining import TAGS, quantity_pairs, text_processor, tiny_pairs


def files(folder):
    """What is in a folder but for locks, and for what says what is in it."""
    own = {"manifest.json", "lock"}
    return [path for path in folder.rglob("*") if path.is_file() and path.name not in own]


def encoder(**fields):
    return PreTrainingEncoder(text_processor(**fields), TAGS, "jieba")


def test_rows_are_those_of_the_encoder(tmp_path):
    pairs = tiny_pairs(23)
    seen = []
    dataset = encode_corpus(pairs, encoder(), tmp_path, batch_size=10, progress=lambda *args: seen.append(args))
    expected = encoder().encode(*zip(*pairs, strict=True))
    assert set(dataset.column_names) == set(expected)
    for name, values in expected.items():
        values = [value.tolist() if hasattr(value, "tolist") else value for value in values]
        assert dataset[name][:] == values, name
    assert seen == [(10, 23), (20, 23), (23, 23)]
    assert [path.suffix for path in files(tmp_path)] == [".arrow"]


def test_without_tags(tmp_path):
    dataset = encode_corpus([("小明有5个", None)], PreTrainingEncoder(text_processor()), tmp_path)
    assert "pos_labels" not in dataset.column_names and dataset["length"][:] == [7]


def test_tags_that_are_not_learned_say_what_is_masked(tmp_path):
    pairs = quantity_pairs(9)
    tagged = encode_corpus(pairs, encoder(), tmp_path)
    plain = PreTrainingEncoder(text_processor(), tagger="jieba")
    dataset = encode_corpus(pairs, plain, tmp_path)
    assert "pos_labels" not in dataset.column_names
    for name in dataset.column_names:
        assert dataset[name][:] == tagged[name][:], name
    bare = encode_corpus([(text, None) for text, _ in pairs], plain, tmp_path)
    assert bare["mask_class"][:] != dataset["mask_class"][:]
    assert len(files(tmp_path)) == 3


def test_it_is_written_once(tmp_path):
    pairs = tiny_pairs(9)
    first, seen = encoder(), []
    encode_corpus(pairs, first, tmp_path)
    (path,) = files(tmp_path)
    stamp = path.stat().st_mtime_ns
    for each in (first, encoder()):
        encode_corpus(pairs, each, tmp_path, progress=lambda *args: seen.append(args))
    assert path.stat().st_mtime_ns == stamp and not seen


def test_a_damaged_file_is_written_anew(tmp_path, caplog):
    pairs = tiny_pairs(9)
    encode_corpus(pairs, encoder(), tmp_path)
    (path,) = files(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-60] + b"?" + whole[-59:])
    dataset = encode_corpus(pairs, encoder(), tmp_path)
    assert len(dataset) == 9 and path.read_bytes() == whole
    assert len(caplog.messages) == 1 and str(path) in caplog.messages[0]
    (path.parent / "manifest.json").write_text("{}")
    with pytest.raises(StoreError, match="damaged.*'format'.*Remove"):
        encode_corpus(pairs, encoder(), tmp_path)


@pytest.mark.parametrize(
    "change", ["text", "tag", "indexed_numbers", "max_length", "tags", "tagger", "tokens", "keywords"]
)
def test_another_file_for_anything_else(change, tmp_path, monkeypatch):
    pairs = tiny_pairs(9)
    encode_corpus(pairs, encoder(), tmp_path)
    other = encoder()
    if change == "text":
        pairs = pairs[:-1]
    elif change == "tag":
        text, words = pairs[0]
        pairs = [(text, [type(words[0])(words[0].word, "q", words[0].start, words[0].end), *words[1:]]), *pairs[1:]]
    elif change == "indexed_numbers":
        other = encoder(indexed_numbers=True)
    elif change == "max_length":
        other = encoder(max_length=8)
    elif change == "tags":
        other = PreTrainingEncoder(text_processor(), [*TAGS, "z"], "jieba")
    elif change == "tagger":
        other = PreTrainingEncoder(text_processor(), TAGS, "ltp")
    elif change == "tokens":
        other.processor.tokenizer.add_tokens(["苹果"])
    else:
        monkeypatch.setattr("hf_mwp.solver.corpus.pretraining_dataset.read_keywords", lambda language: {})
    encode_corpus(pairs, other, tmp_path)
    assert len(list(files(tmp_path))) == 2


def test_an_error_leaves_nothing_behind(tmp_path):
    pairs = tiny_pairs(9)
    wrong = [*pairs, ("小明", [type(pairs[0][1][0])("小明", "nh", 0, 2)])]
    with pytest.raises(DataError, match="'nh'.*jieba"):
        encode_corpus(wrong, encoder(), tmp_path, batch_size=4)
    assert not list(files(tmp_path))


def test_an_empty_corpus(tmp_path):
    with pytest.raises(DataError, match="empty"):
        encode_corpus([], encoder(), tmp_path)
    assert not list(files(tmp_path))


def test_a_full_disk_leaves_nothing_behind(tmp_path):
    # The system refuses to let files grow, as it does on a full disk.
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
        with pytest.raises(OSError) as raised:
            encode_corpus(tiny_pairs(9), encoder(), tmp_path / "new")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert raised.value.errno == errno.EFBIG
    assert not list(files(tmp_path / "new"))


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/"):
        encode_corpus(tiny_pairs(9), encoder(), tmp_path / "file")

import errno
import json
import multiprocessing
import os
import pickle
import re
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow
import pytest

from hf_mwp.runtime.problems import JiebaTagger, TaggedWord
from hf_mwp.solver.corpus import TaggedCorpus, read_texts, tag_corpus
from hf_mwp.solver.corpus import tagged_corpus as module
from hf_mwp.solver.data import DataError
from hf_mwp.utils import row_store
from tests.solver.corpus.tagging import CharacterTagger, make_texts


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(module, "SHARD_SIZE", 8)


def files(folder):
    """The files of texts, and whatever should not be there."""
    own = {"manifest.json", "lock"}
    return sorted(path for path in Path(folder).rglob("*") if path.is_file() and path.name not in own)


def expected(texts):
    return list(zip(texts, CharacterTagger().tag(texts), strict=True))


def test_texts_and_words(tmp_path):
    texts = ["", "  ", *make_texts(18)]
    corpus = tag_corpus(iter(texts), CharacterTagger(), tmp_path)
    assert isinstance(corpus, TaggedCorpus) and len(corpus) == 20
    assert list(corpus) == [corpus[index] for index in range(20)] == expected(texts)
    assert corpus[-1] == corpus[19] and corpus[0] == ("", [])
    assert corpus.tagger == "characters" and corpus.tags == ["m", "n", "x"]
    assert corpus.folder == tmp_path / f"characters-{CharacterTagger().fingerprint}"
    assert corpus.fingerprint == CharacterTagger().fingerprint
    assert len(files(tmp_path)) == 3
    for index in (20, -21):
        with pytest.raises(IndexError, match="20"):
            corpus[index]


def test_jieba_end_to_end(tmp_path):
    texts = ["用去(3/8)吨，还剩 80%", "小明有4个苹果"]
    corpus = tag_corpus(texts, JiebaTagger(), tmp_path)
    assert list(corpus) == list(zip(texts, JiebaTagger().tag(texts), strict=True))
    assert TaggedWord("80%", "m", 12, 15) in corpus[0][1]


def test_what_is_there_is_not_tagged_again(tmp_path):
    first = tag_corpus(make_texts(20), CharacterTagger(), tmp_path)
    tagger, before = CharacterTagger(), files(tmp_path)
    times = [path.stat().st_mtime_ns for path in before]
    again = tag_corpus(make_texts(20), tagger, tmp_path)
    assert tagger.count == 0 and list(again) == list(first) and again.digest == first.digest
    assert files(tmp_path) == before and [path.stat().st_mtime_ns for path in before] == times


@pytest.mark.parametrize("batch_size", [1, 3, 8, 100])
def test_batches_do_not_matter(tmp_path, batch_size):
    tagger = CharacterTagger()
    corpus = tag_corpus(make_texts(20), tagger, tmp_path / "a", batch_size=batch_size)
    assert max(map(len, tagger.batches)) == min(batch_size, 8)
    tag_corpus(make_texts(20), CharacterTagger(), tmp_path / "b")
    assert [path.read_bytes() for path in files(tmp_path / "a")] == [p.read_bytes() for p in files(tmp_path / "b")]
    assert list(corpus) == expected(make_texts(20))


@pytest.mark.parametrize(("old", "new"), [(20, 23), (20, 24), (20, 50), (16, 17), (3, 4)])
def test_added_texts_alone_are_tagged(tmp_path, old, new):
    before = tag_corpus(make_texts(old), CharacterTagger(), tmp_path)
    tagger = CharacterTagger()
    after = tag_corpus(make_texts(new), tagger, tmp_path)
    assert tagger.count == new - old
    assert list(after) == expected(make_texts(new)) and list(before) == expected(make_texts(old))
    assert after.digest != before.digest


def test_a_changed_text_alone_is_tagged_again(tmp_path):
    texts = make_texts(40)
    tag_corpus(texts, CharacterTagger(), tmp_path)
    tagger = CharacterTagger()
    changed = [*texts[:17], "另一题", *texts[18:]]
    assert list(tag_corpus(changed, tagger, tmp_path)) == expected(changed)
    assert tagger.count == 1
    again = tag_corpus(texts[1:], tagger, tmp_path)
    assert list(again) == expected(texts[1:]) and tagger.count == 1
    assert again.digest != tag_corpus(texts[:0:-1], tagger, tmp_path).digest and tagger.count == 1


def test_progress(tmp_path):
    seen = []
    tag_corpus(make_texts(20), CharacterTagger(), tmp_path, 3, lambda done, total: seen.append((done, total)))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[0] == (0, 20) and seen[-1] == (20, 20) and (8, 20) in seen
    seen.clear()
    tag_corpus(iter(make_texts(20)), CharacterTagger(), tmp_path, 3, lambda done, total: seen.append((done, total)))
    assert seen == [(8, None), (16, None), (20, None)]


def damage_truncate(path):
    path.write_bytes(path.read_bytes()[:-40])


def damage_byte(path):
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(bytes(content))


def damage_empty(path):
    path.write_bytes(b"")


def damage_beginning(path):
    path.write_bytes(b"?" + path.read_bytes()[1:])


def damage_other_file(path):
    path.write_text('{"format": "something"}\n')


def damage_other_texts(path):
    path.write_bytes(files(path.parent)[0].read_bytes())


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (damage_truncate, r"\d bytes"),
        (damage_byte, "content"),
        (damage_empty, r"\b0 bytes"),
        (damage_beginning, "content"),
        (damage_other_file, r"\d bytes"),
        (damage_other_texts, "content"),
        (Path.unlink, "No such file"),
    ],
)
def test_a_damaged_or_foreign_file_is_named_and_made_anew(tmp_path, caplog, damage, reason):
    # Texts of one length, so that files of others have as many bytes.
    texts = make_texts(40)[10:34]
    tag_corpus(texts, CharacterTagger(), tmp_path)
    victim = files(tmp_path)[1]
    whole = victim.read_bytes()
    damage(victim)
    assert not victim.exists() or victim.read_bytes() != whole
    tagger = CharacterTagger()
    corpus = tag_corpus(texts, tagger, tmp_path)
    assert list(corpus) == expected(texts) and tagger.count == 8
    assert len(caplog.messages) == 1 and str(victim) in caplog.messages[0] and re.search(reason, caplog.messages[0])
    assert len(files(tmp_path)) == 3 and files(tmp_path)[-1].read_bytes() == whole


def test_a_foreign_folder_is_refused(tmp_path):
    corpus = tag_corpus(make_texts(20), CharacterTagger(), tmp_path)
    manifest = corpus.folder / "manifest.json"
    whole = manifest.read_text("utf-8")
    manifest.write_text(whole.replace('"characters ', '"strangers '), "utf-8")
    with pytest.raises(row_store.StoreError, match="fingerprint strangers .*Remove"):
        tag_corpus(make_texts(20), CharacterTagger(), tmp_path)
    manifest.write_text(whole[:50], "utf-8")
    with pytest.raises(row_store.StoreError, match=f"{manifest} .*damaged.*Remove"):
        tag_corpus(make_texts(20), CharacterTagger(), tmp_path)


def test_a_damaged_beginning_is_not_grown(tmp_path, caplog):
    tag_corpus(make_texts(4), CharacterTagger(), tmp_path)
    damage_byte(files(tmp_path)[0])
    tagger = CharacterTagger()
    assert list(tag_corpus(make_texts(6), tagger, tmp_path)) == expected(make_texts(6))
    assert tagger.count == 6 and "content" in caplog.messages[0]


def test_tags_of_another_version_are_not_used(tmp_path):
    tag_corpus(make_texts(20), CharacterTagger(version="1"), tmp_path)
    tagger = CharacterTagger(version="2")
    corpus = tag_corpus(make_texts(20), tagger, tmp_path)
    assert tagger.count == 20 and corpus.fingerprint == tagger.fingerprint


@pytest.mark.parametrize("texts", [[], iter(())])
def test_an_empty_corpus(tmp_path, texts):
    with pytest.raises(DataError, match="empty"):
        tag_corpus(texts, CharacterTagger(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_full_disk_keeps_what_is_done(tmp_path, monkeypatch):
    def full(descriptor):
        if "rows-00002" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(row_store.os, "fsync", full)
    with pytest.raises(OSError, match="No space left on device"):
        tag_corpus(make_texts(30), CharacterTagger(), tmp_path)
    assert len(files(tmp_path)) == 2
    monkeypatch.undo()
    monkeypatch.setattr(module, "SHARD_SIZE", 8)
    tagger = CharacterTagger()
    assert list(tag_corpus(make_texts(30), tagger, tmp_path)) == expected(make_texts(30))
    assert tagger.count == 14


def test_a_cache_folder_that_is_a_file(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/"):
        tag_corpus(make_texts(3), CharacterTagger(), tmp_path / "file")


def test_an_error_of_the_source_keeps_what_is_done(tmp_path):
    def source():
        yield from make_texts(20)
        raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        tag_corpus(source(), CharacterTagger(), tmp_path)
    tagger = CharacterTagger()
    tag_corpus(make_texts(20), tagger, tmp_path)
    assert tagger.count == 4


def _tag_slowly(folder):
    tag_corpus(make_texts(80), CharacterTagger(delay=0.02), folder, batch_size=1)


def test_killed_and_resumed(tmp_path):
    folder = tmp_path / "killed"
    process = multiprocessing.get_context("fork").Process(target=_tag_slowly, args=(folder,))
    process.start()
    try:
        until = time.monotonic() + 120
        while len(kept(folder)) < 3:
            assert process.is_alive() and time.monotonic() < until
            time.sleep(0.005)
    finally:
        process.kill()
        process.join()
    done = sum(file["rows"] for file in kept(folder))
    assert 24 <= done < 80
    tagger = CharacterTagger()
    resumed = tag_corpus(make_texts(80), tagger, folder)
    assert tagger.count == 80 - done
    assert list(resumed) == expected(make_texts(80))
    tag_corpus(make_texts(80), CharacterTagger(), tmp_path / "whole")
    contents = [[path.read_bytes() for path in files(tmp_path / name)] for name in ("killed", "whole")]
    assert contents[0] == contents[1]


def kept(folder):
    """What the manifest of the only store says of its files."""
    return [file for path in folder.glob("*/manifest.json") for file in json.loads(path.read_text("utf-8"))["files"]]


def test_what_a_killed_process_had_begun_is_removed(tmp_path):
    corpus = tag_corpus(make_texts(3), CharacterTagger(), tmp_path)
    begun, complete = corpus.folder / "rows-00001.part", corpus.folder / "rows-00001.arrow"
    begun.write_text("{")
    complete.write_text("{")
    # Somebody else may be writing: nothing is touched by those who only read.
    tag_corpus(make_texts(3), CharacterTagger(), tmp_path)
    assert begun.exists() and complete.exists()
    assert list(tag_corpus(make_texts(4), CharacterTagger(), tmp_path)) == expected(make_texts(4))
    assert not begun.exists() and len(files(tmp_path)) == 2


def _read(corpus):
    return [corpus[index] for index in range(len(corpus))]


def _tag(folder):
    return _read(tag_corpus(make_texts(40), CharacterTagger(), folder))


def test_processes_share_it(tmp_path):
    texts = make_texts(40)
    with multiprocessing.get_context("fork").Pool(2) as pool:
        # Both write the same files, then both read them.
        assert pool.map(_tag, [tmp_path, tmp_path]) == [expected(texts)] * 2
        corpus = tag_corpus(texts, CharacterTagger(), tmp_path)
        assert pool.map(_read, [corpus, corpus]) == [expected(texts)] * 2
    assert list(pickle.loads(pickle.dumps(corpus))) == list(corpus)  # noqa: S301 (our own bytes)


def test_memory_does_not_grow(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "SHARD_SIZE", 64)

    class Streaming(CharacterTagger):
        def tag(self, texts):
            words = super().tag(texts)
            self.batches.clear()
            return words

    def peak(count):
        source = (f"{index} " * 20 for index in range(count))
        tracemalloc.start()
        corpus = tag_corpus(source, Streaming(), tmp_path / str(count))
        for _ in corpus:
            pass
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(64)  # what is imported and cached at first use
    assert peak(1280) < 1.3 * peak(256)


def test_a_file_is_readable_without_us(tmp_path):
    tag_corpus(["有4个"], CharacterTagger(), tmp_path)
    (row,) = pyarrow.ipc.open_stream(files(tmp_path)[0]).read_all().to_pylist()
    assert row["text"] == "有4个" and json.loads(row["tags"]) == ["m", "n"]
    assert np.frombuffer(row["words"], np.int32).tolist() == [1, 0, 1, 0, 1, 2, 1, 2, 3]


@pytest.mark.slow
def test_jieba_on_the_whole_corpus(tmp_path, repository, monkeypatch):
    monkeypatch.undo()
    path = repository / "examples" / "data" / "corpus" / "mlm_corpus.txt.gz"
    counts = Counter()
    corpus = tag_corpus(read_texts(path, language="zh", counts=counts), JiebaTagger(), tmp_path)
    assert counts["read"] == 55_849 and len(corpus) == counts["kept"] > 54_000
    tags = Counter(word.tag for _, words in corpus for word in words)
    assert sum(tags.values()) > 1_900_000 and set(tags) == set(corpus.tags) and len(tags) >= 50
    assert [tag for tag, _ in tags.most_common(4)] == ["x", "m", "n", "v"]

import errno
import json
import multiprocessing
import os
import pickle
import time
import tracemalloc
from collections import Counter

import numpy as np
import pyarrow
import pytest

from hf_mwp.runtime.problems import JiebaTagger
from hf_mwp.solver.corpus import TaggedCorpus, read_texts, tag_corpus, tagged_corpus
from hf_mwp.solver.data import DataError
from hf_mwp.utils import row_store
from tests.solver.corpus.tagging import CharacterTagger, make_texts, stored_files


@pytest.fixture(autouse=True)
def small_files(monkeypatch):
    monkeypatch.setattr(tagged_corpus, "SHARD_SIZE", 8)


def tagged(texts):
    """The pairs of a corpus."""
    return list(zip(texts, CharacterTagger().tag(texts), strict=True))


def tag_again(texts, folder):
    """Tag texts into a folder with stored texts, check the result, and return the corpus and the number of newly
    tagged texts."""
    tagger = CharacterTagger()
    corpus = tag_corpus(texts, tagger, folder)
    assert list(corpus) == tagged(texts)
    return corpus, tagger.num_tagged


def test_corpus_is_a_sequence_of_texts_and_words(tmp_path):
    texts = ["", "  ", *make_texts(18)]
    corpus = tag_corpus(iter(texts), CharacterTagger(), tmp_path)
    assert isinstance(corpus, TaggedCorpus)
    assert len(corpus) == 20
    assert list(corpus) == [corpus[index] for index in range(20)] == tagged(texts)
    assert corpus[-1] == corpus[19]
    assert corpus.tagger == "characters"
    assert corpus.tags == ["m", "n", "x"]
    assert corpus.fingerprint == CharacterTagger().fingerprint
    assert corpus.folder == tmp_path / f"characters-{corpus.fingerprint}"
    assert len(stored_files(tmp_path)) == 3
    assert list(pickle.loads(pickle.dumps(corpus))) == list(corpus)  # noqa: S301 (our own bytes)
    for index in (20, -21):
        with pytest.raises(IndexError, match="20"):
            corpus[index]


def test_stored_texts_are_not_tagged_again(tmp_path):
    corpus, _ = tag_again(make_texts(20), tmp_path)
    times = {path: path.stat().st_mtime_ns for path in stored_files(tmp_path)}
    corpus_again, num_tagged = tag_again(make_texts(20), tmp_path)
    assert num_tagged == 0
    assert corpus_again.digest == corpus.digest
    assert {path: path.stat().st_mtime_ns for path in stored_files(tmp_path)} == times


@pytest.mark.parametrize("batch_size", [3, 100])
def test_batch_size_does_not_change_the_files(tmp_path, batch_size):
    tagger = CharacterTagger()
    tag_corpus(make_texts(20), tagger, tmp_path / "batches", batch_size=batch_size)
    assert max(map(len, tagger.batches)) == min(batch_size, 8)
    tag_again(make_texts(20), tmp_path / "default")
    contents = [path.read_bytes() for path in stored_files(tmp_path / "batches")]
    assert contents == [path.read_bytes() for path in stored_files(tmp_path / "default")]


@pytest.mark.parametrize(("old", "new"), [(20, 23), (20, 50), (16, 17), (3, 4)])
def test_only_added_texts_are_tagged(tmp_path, old, new):
    corpus, _ = tag_again(make_texts(old), tmp_path)
    grown, num_tagged = tag_again(make_texts(new), tmp_path)
    assert num_tagged == new - old
    assert list(corpus) == tagged(make_texts(old))
    assert grown.digest != corpus.digest


def test_only_a_changed_text_is_tagged_again(tmp_path):
    texts = make_texts(40)
    tag_again(texts, tmp_path)
    _, num_tagged = tag_again([*texts[:17], "另一题", *texts[18:]], tmp_path)
    assert num_tagged == 1
    shorter, num_tagged = tag_again(texts[1:], tmp_path)
    assert num_tagged == 0
    reversed_corpus, num_tagged = tag_again(texts[:0:-1], tmp_path)
    assert num_tagged == 0
    assert reversed_corpus.digest != shorter.digest


def test_progress(tmp_path):
    calls = []
    tag_corpus(make_texts(20), CharacterTagger(), tmp_path, 3, lambda *numbers: calls.append(numbers))
    assert calls == sorted(calls)
    assert calls[0] == (0, 20)
    assert calls[-1] == (20, 20)
    assert (8, 20) in calls
    calls.clear()
    tag_corpus(iter(make_texts(20)), CharacterTagger(), tmp_path, 3, lambda *numbers: calls.append(numbers))
    assert calls == [(8, None), (16, None), (20, None)]


def flip_a_bit(path):
    content = bytearray(path.read_bytes())
    content[-30] ^= 1
    path.write_bytes(bytes(content))


def copy_the_first_file(path):
    # Texts of the same length make a file with as many bytes.
    path.write_bytes(stored_files(path.parent)[0].read_bytes())


def remove(path):
    path.unlink()


@pytest.mark.parametrize("damage", [flip_a_bit, copy_the_first_file, remove])
def test_texts_of_a_damaged_file_are_tagged_again(tmp_path, caplog, damage):
    texts = make_texts(40)[10:34]
    tag_again(texts, tmp_path)
    path = stored_files(tmp_path)[1]
    content = path.read_bytes()
    damage(path)
    _, num_tagged = tag_again(texts, tmp_path)
    assert num_tagged == 8
    assert len(caplog.messages) == 1
    assert str(path) in caplog.messages[0]
    files = stored_files(tmp_path)
    assert len(files) == 3
    assert files[-1].read_bytes() == content


def test_incomplete_damaged_file_is_not_extended(tmp_path):
    tag_again(make_texts(4), tmp_path)
    flip_a_bit(stored_files(tmp_path)[0])
    _, num_tagged = tag_again(make_texts(6), tmp_path)
    assert num_tagged == 6


def test_tags_of_another_version_are_not_used(tmp_path):
    tag_again(make_texts(20), tmp_path)
    tagger = CharacterTagger(version="2")
    corpus = tag_corpus(make_texts(20), tagger, tmp_path)
    assert tagger.num_tagged == 20
    assert corpus.fingerprint == tagger.fingerprint


@pytest.mark.parametrize("texts", [[], iter(())])
def test_empty_corpus_is_refused(tmp_path, texts):
    with pytest.raises(DataError, match="empty"):
        tag_corpus(texts, CharacterTagger(), tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_full_disk_keeps_complete_files(tmp_path, monkeypatch):
    def fsync(descriptor):
        if "rows-00002" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(row_store.os, "fsync", fsync)
        with pytest.raises(OSError, match="No space left on device"):
            tag_corpus(make_texts(30), CharacterTagger(), tmp_path)
    assert len(stored_files(tmp_path)) == 2
    _, num_tagged = tag_again(make_texts(30), tmp_path)
    assert num_tagged == 14


def test_error_of_the_source_keeps_complete_files(tmp_path):
    def source():
        yield from make_texts(20)
        raise RuntimeError("cut off")

    with pytest.raises(RuntimeError, match="cut off"):
        tag_corpus(source(), CharacterTagger(), tmp_path)
    _, num_tagged = tag_again(make_texts(20), tmp_path)
    assert num_tagged == 4


def tag_slowly(folder):
    tag_corpus(make_texts(80), CharacterTagger(delay=0.02), folder, batch_size=1)


def stored_rows(folder):
    """The number of rows of each complete file."""
    for path in folder.glob("*/manifest.json"):
        return [file["rows"] for file in json.loads(path.read_text("utf-8"))["files"]]
    return []


@pytest.mark.slow
def test_killed_process_is_resumed(tmp_path):
    folder = tmp_path / "killed"
    process = multiprocessing.get_context("fork").Process(target=tag_slowly, args=(folder,))
    process.start()
    try:
        deadline = time.monotonic() + 120
        while len(stored_rows(folder)) < 3:
            assert process.is_alive()
            assert time.monotonic() < deadline
            time.sleep(0.005)
    finally:
        process.kill()
        process.join()
    num_stored = sum(stored_rows(folder))
    assert 24 <= num_stored < 80
    _, num_tagged = tag_again(make_texts(80), folder)
    assert num_tagged == 80 - num_stored
    tag_again(make_texts(80), tmp_path / "whole")
    contents = [path.read_bytes() for path in stored_files(folder)]
    assert contents == [path.read_bytes() for path in stored_files(tmp_path / "whole")]


def test_unfinished_files_of_a_killed_process_are_removed_when_writing(tmp_path):
    corpus, _ = tag_again(make_texts(3), tmp_path)
    unfinished = corpus.folder / "rows-00001.part"
    unlisted = corpus.folder / "rows-00001.arrow"
    unfinished.write_text("{")
    unlisted.write_text("{")
    # Another process may be writing, so reading changes nothing.
    tag_again(make_texts(3), tmp_path)
    assert unfinished.exists()
    assert unlisted.exists()
    tag_again(make_texts(4), tmp_path)
    assert not unfinished.exists()
    assert len(stored_files(tmp_path)) == 2


def tag_and_read(folder):
    corpus = tag_corpus(make_texts(40), CharacterTagger(), folder)
    return list(corpus)


@pytest.mark.slow
def test_processes_share_a_corpus(tmp_path):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        # Both write the same files, then both read them.
        corpora = pool.map(tag_and_read, [tmp_path, tmp_path])
        corpus = tag_corpus(make_texts(40), CharacterTagger(), tmp_path)
        corpora += pool.map(list, [corpus, corpus])
    assert corpora == [tagged(make_texts(40))] * 4


@pytest.mark.slow
def test_memory_does_not_grow_with_the_corpus(tmp_path, monkeypatch):
    monkeypatch.setattr(tagged_corpus, "SHARD_SIZE", 32)

    class ForgetfulTagger(CharacterTagger):
        def tag(self, texts):
            words = super().tag(texts)
            self.batches.clear()
            return words

    def peak_memory(count):
        source = (f"{index} " * 10 for index in range(count))
        tracemalloc.start()
        for _ in tag_corpus(source, ForgetfulTagger(), tmp_path / str(count)):
            pass
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak

    peak_memory(32)  # imports and caches of the first use
    assert peak_memory(512) < 1.4 * peak_memory(128)


def test_stored_rows_can_be_read_without_the_package(tmp_path):
    tag_again(["有4个"], tmp_path)
    (row,) = pyarrow.ipc.open_stream(stored_files(tmp_path)[0]).read_all().to_pylist()
    assert row["text"] == "有4个"
    assert json.loads(row["tags"]) == ["m", "n"]
    assert np.frombuffer(row["words"], np.int32).tolist() == [1, 0, 1, 0, 1, 2, 1, 2, 3]


@pytest.mark.slow
def test_jieba_on_the_whole_corpus(tmp_path, repository, monkeypatch):
    monkeypatch.undo()
    path = repository / "examples" / "data" / "corpus" / "mlm_corpus.txt.gz"
    counts = Counter()
    corpus = tag_corpus(read_texts(path, language="zh", counts=counts), JiebaTagger(), tmp_path)
    assert counts["read"] == 55_849
    assert len(corpus) == counts["kept"] > 54_000
    tags = Counter()
    for _, words in corpus:
        tags.update(word.tag for word in words)
    assert tags.total() > 1_900_000
    assert set(tags) == set(corpus.tags)
    assert len(tags) >= 50
    assert [tag for tag, _ in tags.most_common(4)] == ["x", "m", "n", "v"]

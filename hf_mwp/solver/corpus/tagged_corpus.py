"""Corpus of texts with tagged words, stored on disk."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path

import numpy as np

from hf_mwp.runtime.tagging.pos_tagger import PosTagger, TaggedWord
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.row_store import RowStore


SHARD_SIZE = 1024  # Number of texts in a file, and maximum number of texts that a killed process loses.
Progress = Callable[[int, int | None], None] | None  # Called with the numbers of finished and of all texts.
TaggedText = tuple[str, list[TaggedWord]]


class TaggedCorpus(Sequence[TaggedText]):
    """Sequence of pairs `(text, list[TaggedWord])`, read from the files that [`tag_corpus`] wrote. The texts stay on
    disk, so a corpus can be pickled and shared between processes. `fingerprint` is that of the tagger, `tags` are the
    sorted tags that occur in the corpus, and `digest` depends on the texts, their order and the tagger."""

    @checked
    def __init__(self, store: RowStore, tagger: PosTagger, keys: bytes, tags: Iterable[str]):
        self.folder = store.folder
        self.tagger = tagger.name
        self.fingerprint = tagger.fingerprint
        self.tags: list[str] = sorted(tags)
        facts = f"{self.tagger}\0{self.fingerprint}\0".encode()
        self.digest = hashlib.sha256(facts + keys).hexdigest()[:16]
        self._store = store
        self._numbers = store.find(np.frombuffer(keys, "S16"))

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: int) -> TaggedText:
        return self._read([self._numbers[index]])[0]

    def __iter__(self) -> Iterator[TaggedText]:
        for start in range(0, len(self), SHARD_SIZE):
            yield from self._read(self._numbers[start : start + SHARD_SIZE])

    def _read(self, numbers: Sequence[int]) -> list[TaggedText]:
        texts = []
        for row in self._store.rows(numbers, ["text", "tags", "words"]):
            text = row["text"]
            tags = json.loads(row["tags"])
            words = []
            for tag, start, end in np.frombuffer(row["words"], np.int32).reshape(-1, 3).tolist():
                words.append(TaggedWord(text[start:end], tags[tag], start, end))
            texts.append((text, words))
        return texts


@checked
def tag_corpus(
    texts: Iterable[str], tagger: PosTagger, cache_dir: str | Path, batch_size: int = 256, progress: Progress = None
) -> TaggedCorpus:
    """Tag a stream of texts, and store the result in files of 1,024 texts in the folder `<tagger>-<fingerprint>` of
    `cache_dir`. Stored texts are not tagged again, so the same call resumes a killed one. Damaged files are listed in
    a warning, and their texts are tagged again. Several processes may tag and read a corpus; they write one after
    another. The total passed to `progress` is `None` if `texts` has no length. Raises `DataError` if the corpus is
    empty, and `OSError` if the files cannot be written; complete files are kept."""
    import pyarrow

    if progress is None:
        progress = _ignore_progress
    total = len(texts) if hasattr(texts, "__len__") else None
    stream = iter(texts)
    corpus_keys = bytearray()
    tags = set()
    num_tagged = 0
    is_writing = False
    store = RowStore(Path(cache_dir) / f"{tagger.name}-{tagger.fingerprint}", f"{tagger.name} {tagger.fingerprint}")
    with ExitStack() as stack:
        while chunk := list(islice(stream, SHARD_SIZE)):
            keys = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in chunk]
            # Lock the folder before the first file is written, then check again which texts are missing.
            if len(store.missing(keys)) and not is_writing:
                stack.enter_context(store.locked())
                columns = {"key": pyarrow.binary(16), "text": "string", "tags": "string", "words": "binary"}
                stack.enter_context(store.writing(pyarrow.schema(columns)))
                is_writing = True
            missing = store.missing(keys)
            if len(missing):
                missing_texts = [chunk[index] for index in missing]
                rows = {"key": [keys[index] for index in missing], "text": missing_texts, "tags": [], "words": []}
                for start in range(0, len(missing), batch_size):
                    progress(num_tagged + start, total)
                    for words in tagger.tag(missing_texts[start : start + batch_size]):
                        word_tags = sorted({word.tag for word in words})
                        spans = [(word_tags.index(word.tag), word.start, word.end) for word in words]
                        rows["tags"].append(json.dumps(word_tags, ensure_ascii=False))
                        rows["words"].append(np.array(spans, np.int32).tobytes())
                store.append(rows)
                store.complete()
            for row in store.rows(store.find(keys), ["tags"]):
                tags.update(json.loads(row["tags"]))
            corpus_keys += b"".join(keys)
            num_tagged += len(chunk)
            progress(num_tagged, total)
    if not corpus_keys:
        raise DataError("the corpus is empty. Pass at least one text to tag")
    return TaggedCorpus(store, tagger, bytes(corpus_keys), tags)


def _ignore_progress(done: int, total: int | None) -> None:
    pass

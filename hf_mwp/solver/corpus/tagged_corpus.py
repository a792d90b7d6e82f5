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
        self.folder, self.tagger, self.fingerprint = store.folder, tagger.name, tagger.fingerprint
        self.tags: list[str] = sorted(tags)
        facts = f"{self.tagger}\0{self.fingerprint}\0".encode()
        self.digest = hashlib.sha256(facts + keys).hexdigest()[:16]
        self._store, self._numbers = store, store.find(np.frombuffer(keys, "S16"))

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
            text, tags = row["text"], json.loads(row["tags"])
            words = np.frombuffer(row["words"], np.int32).reshape(-1, 3)
            texts.append((text, [TaggedWord(text[i:j], tags[tag], i, j) for tag, i, j in words.tolist()]))
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

    progress, total = progress or (lambda done, total: None), len(texts) if hasattr(texts, "__len__") else None
    stream, keys, tags, done, writing = iter(texts), bytearray(), set(), 0, False
    store = RowStore(Path(cache_dir) / f"{tagger.name}-{tagger.fingerprint}", f"{tagger.name} {tagger.fingerprint}")
    with ExitStack() as stack:
        while chunk := list(islice(stream, SHARD_SIZE)):
            own = [hashlib.blake2b(text.encode(), digest_size=16).digest() for text in chunk]
            # Lock the folder before the first file is written, then check again which texts are missing.
            if len(store.missing(own)) and not writing:
                stack.enter_context(store.locked())
                columns = {"key": pyarrow.binary(16), "text": "string", "tags": "string", "words": "binary"}
                stack.enter_context(store.writing(pyarrow.schema(columns)))
                writing = True
            missing = store.missing(own)
            if len(missing):
                rows = {"key": [own[index] for index in missing], "text": [chunk[index] for index in missing]}
                rows |= {"tags": [], "words": []}
                for start in range(0, len(missing), batch_size):
                    progress(done + start, total)
                    for words in tagger.tag(rows["text"][start : start + batch_size]):
                        ids = {tag: number for number, tag in enumerate(sorted({word.tag for word in words}))}
                        places = np.array([(ids[word.tag], word.start, word.end) for word in words], np.int32)
                        rows["tags"].append(json.dumps(list(ids), ensure_ascii=False))
                        rows["words"].append(places.tobytes())
                store.append(rows)
                store.complete()
            tags.update(*(json.loads(row["tags"]) for row in store.rows(store.find(own), ["tags"])))
            keys += b"".join(own)
            done += len(chunk)
            progress(done, total)
    if not keys:
        raise DataError("the corpus is empty. Pass at least one text to tag")
    return TaggedCorpus(store, tagger, bytes(keys), tags)

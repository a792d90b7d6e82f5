"""A corpus with its words tagged, on disk."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from hashlib import sha256
from itertools import accumulate, islice
from pathlib import Path

from transformers.utils import logging

from ...problems.tagging.pos_tagger import PosTagger
from ...problems.tagging.tagged_word import TaggedWord
from ..data_error import DataError, cannot_write
from .tagged_shard import TaggedShard, TaggedText, digest_texts, remove_abandoned, write_shard


logger = logging.get_logger(__name__)

SHARD_SIZE = 1024
"""Texts of a file; what a kill can lose."""

Progress = Callable[[int, int | None], None]


class TaggedCorpus(Sequence[TaggedText]):
    """
    Texts with their tagged words, read from the files that [`tag_corpus`] wrote.

    `corpus[index]` and iteration give `(text, list[TaggedWord])`. Little of it is in memory, whatever its size. It can
    be pickled and shared by processes, as long as its files are there.

    Attributes:
        tagger (`str`): Name of the tagger.
        fingerprint (`str`): The tagger's fingerprint.
        tags (`list[str]`): The tags in the corpus, sorted.
        digest (`str`): Changes with any text, their order, and the tagger.
        folder (`Path`): Where its files are.
    """

    def __init__(self, folder: Path, names: Sequence[str]):
        shards = [TaggedShard(folder / name) for name in names]
        headers = [shard.header for shard in shards]
        self.folder = folder
        self.tagger: str = headers[0]["tagger"]
        self.fingerprint: str = headers[0]["fingerprint"]
        self.tags: list[str] = sorted({tag for header in headers for tag in header["tags"]})
        facts = [self.tagger, self.fingerprint, *(header["texts"] for header in headers)]
        self.digest = sha256("\0".join(facts).encode()).hexdigest()[:16]
        self._names = list(names)
        self._ends = list(accumulate(len(shard) for shard in shards))
        self._owner: weakref.finalize | None = None

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, index: int) -> TaggedText:
        position = index + len(self) if index < 0 else index
        if not 0 <= position < len(self):
            raise IndexError(f"the corpus has {len(self)} texts: there is no {index}")
        number = bisect_right(self._ends, position)
        return _open(self.folder / self._names[number])[position - (self._ends[number - 1] if number else 0)]

    def __iter__(self) -> Iterator[TaggedText]:
        for name in self._names:
            yield from TaggedShard(self.folder / name)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_owner": None}

    def _keep(self, folder: Path) -> None:
        """Removes the temporary folder with this object, but not with a copy of it in another process."""
        self._owner = weakref.finalize(self, _remove, folder, os.getpid())


def tag_corpus(
    texts: Iterable[str],
    tagger: PosTagger,
    cache_dir: str | os.PathLike | None = None,
    batch_size: int = 256,
    progress: Progress | None = None,
) -> TaggedCorpus:
    """
    Tags texts once and keeps the result on disk.

    Texts are read as a stream and written in files of 1,024, each whole or not at all, in a folder
    `<tagger>-<fingerprint>`. The same call goes on where a killed one stopped. Of a corpus that has grown at its end
    only the new texts are tagged; after a change in the middle the texts from there on are tagged again. A file is
    used if it is of this tagger and these texts and its checksum holds; a damaged or foreign one is named in a warning
    and made anew. Several processes may tag and read the same corpus.

    Args:
        texts (`Iterable[str]`):
            The texts; a generator will do.
        tagger ([`~problems.PosTagger`]):
            What tags them.
        cache_dir (`str`, *optional*):
            The folder to keep the tags in. By default a temporary one, which goes with the returned corpus.
        batch_size (`int`, *optional*, defaults to 256):
            Texts that the tagger gets at a time.
        progress (`Callable[[int, int | None], None]`, *optional*):
            Called with the number of texts done and, if `texts` has a length, of all.

    Returns:
        [`TaggedCorpus`]

    Raises:
        DataError: for an empty corpus, something that is no text, a tagger whose words are not those of the text, and
            if the files cannot be written, e.g. on a full disk; what was tagged before is kept.
    """
    if batch_size < 1:
        raise ValueError(f"`batch_size` must be at least 1, not {batch_size}")
    root = Path(tempfile.mkdtemp(prefix="hf_mwp-tags-") if cache_dir is None else cache_dir)
    try:
        corpus = _Tagging(tagger, root, batch_size, progress).run(texts)
    except BaseException:
        if cache_dir is None:
            shutil.rmtree(root, ignore_errors=True)
        raise
    if cache_dir is None:
        corpus._keep(root)
    return corpus


class _Tagging:
    """One run of [`tag_corpus`]."""

    def __init__(self, tagger: PosTagger, root: Path, batch_size: int, progress: Progress | None):
        self.tagger, self.batch_size = tagger, batch_size
        self.progress = progress or (lambda done, total: None)
        self.folder = root / f"{tagger.name}-{tagger.fingerprint}"
        self.done, self.total = 0, None

    def run(self, texts: Iterable[str]) -> TaggedCorpus:
        self.total = len(texts) if hasattr(texts, "__len__") else None
        stream = iter(texts)
        first = list(islice(stream, SHARD_SIZE))
        if not first:
            raise DataError("the corpus is empty: there is no text to tag")
        self._prepare()
        names, chunk = [], first
        while chunk:
            names.append(self._shard(len(names), chunk))
            self.done += len(chunk)
            self.progress(self.done, self.total)
            chunk = list(islice(stream, SHARD_SIZE))
        _open.cache_clear()
        return TaggedCorpus(self.folder, names)

    def _prepare(self) -> None:
        others = [path for path in self.folder.parent.glob(f"{self.tagger.name}-*") if path != self.folder]
        if others and not self.folder.exists():
            logger.warning(
                f"The tags in {', '.join(map(str, others))} are of another version, dictionary or model of "
                f"{self.tagger.name} and are not used: delete them if they are needed no more."
            )
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._cannot_write(error) from error
        remove_abandoned(self.folder)

    def _shard(self, number: int, texts: list[str]) -> str:
        """Name of the file with these texts, which is written if there is none."""
        for index, text in enumerate(texts):
            _check_text(text, self.done + index)
        path = self.folder / f"{number:06d}-{digest_texts(texts)[:16]}.jsonl"
        if not (path.exists() and self._is_good(path, texts)):
            words = self._begun(number, texts)
            while len(words) < len(texts):
                self.progress(self.done + len(words), self.total)
                batch = texts[len(words) : len(words) + self.batch_size]
                words += self._tag(batch)
            try:
                write_shard(path, self.tagger.name, self.tagger.fingerprint, texts, words)
            except OSError as error:
                raise self._cannot_write(error) from error
        return path.name

    def _is_good(self, path: Path, texts: Sequence[str] | None) -> bool:
        try:
            TaggedShard(path).check(self.tagger.name, self.tagger.fingerprint, texts)
        except DataError as error:
            logger.warning(f"{error}; it is not used, and its texts are tagged again.")
            return False
        return True

    def _begun(self, number: int, texts: list[str]) -> list[list[TaggedWord]]:
        """Words of the first texts, from a file that was the corpus's last before texts were added."""
        best: list[list[TaggedWord]] = []
        for path in self.folder.glob(f"{number:06d}-*.jsonl"):
            try:
                shard = TaggedShard(path)
            except DataError:
                continue
            count = len(shard)
            if len(best) < count < len(texts) and shard.header["texts"] == digest_texts(texts[:count]):
                if self._is_good(path, texts[:count]):
                    best = [words for _, words in shard]
        return best

    def _tag(self, texts: list[str]) -> list[list[TaggedWord]]:
        tagged = self.tagger.tag(texts)
        if len(tagged) != len(texts):
            raise DataError(f"the tagger {self.tagger.name} gave {len(tagged)} lists of words for {len(texts)} texts")
        for text, words in zip(texts, tagged, strict=True):
            end = 0
            for word in words:
                if word.start < end or text[word.start : word.end] != word.word or not word.word:
                    raise DataError(
                        f"the tagger {self.tagger.name} gave a word that is not in the text where it says: {word} in "
                        f"{text[:80]!r}"
                    )
                end = word.end
        return tagged

    def _cannot_write(self, error: OSError) -> DataError:
        return cannot_write("the tags", f"{self.done} texts are tagged and kept", error, self.folder)


def _check_text(text: object, index: int) -> None:
    if not isinstance(text, str):
        raise DataError(f"text {index} of the corpus is {type(text).__name__}, not a string")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise DataError(f"text {index} of the corpus is not valid Unicode at character {error.start}") from error


@lru_cache(maxsize=64)
def _open(path: Path) -> TaggedShard:
    return TaggedShard(path)


def _remove(folder: Path, process: int) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)

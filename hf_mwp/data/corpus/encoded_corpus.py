"""Encoded texts of pretraining on disk, written once and mapped into memory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...problems.keywords import read_keywords
from ...store.process_lock import ProcessLock
from ..batches.mwp_processor import tokenizer_settings
from ..data_error import DataError, cannot_write
from .pretraining_encoder import PreTrainingEncoder


if TYPE_CHECKING:
    from datasets import Dataset

VERSION = 2  # of the columns' meaning: files of another one are not read


def encode_corpus(
    corpus: Iterable,
    encoder: PreTrainingEncoder,
    cache_dir: str | os.PathLike,
    batch_size: int = 1000,
    progress: Callable[[int, int | None], None] | None = None,
) -> Dataset:
    """
    Encodes a corpus into an Arrow file, or finds it there. Memory does not grow with the corpus.

    The file's name has a fingerprint of the texts and tags, the tokenizer, the masking of numbers and the keywords;
    it is written under another name and renamed when it is complete.

    Args:
        corpus (iterable of `(str, list[TaggedWord] | None)`):
            Texts with their words; iterated over twice. A [`TaggedCorpus`], or a list of pairs.
        encoder ([`PreTrainingEncoder`]):
            Encodes them.
        cache_dir (`str`):
            Folder of the file.
        batch_size (`int`, *optional*, defaults to 1000):
            Texts that are encoded at a time.
        progress (`Callable[[int, int | None], None]`, *optional*):
            Called with the texts done and their number.

    Returns:
        `datasets.Dataset`: the columns of [`~PreTrainingEncoder.encode`]; [`read_labelling`] tells whose labels
        they hold.

    Raises:
        [`DataError`]: the corpus is empty, its tags do not fit (see there), or the file cannot be written.
    """
    from datasets import Dataset, DatasetInfo

    count, fingerprint = _fingerprint(corpus, encoder)
    if not count:
        raise DataError("the corpus is empty: there is no text to pretrain on")
    path = Path(cache_dir) / f"encoded-{fingerprint}.arrow"
    if not path.exists():
        try:
            _write_whole(path, corpus, count, encoder, batch_size, progress)
        except OSError as error:
            raise cannot_write("the encoded texts", "Nothing of them is kept", error, path) from error
    labelling = {"tagger": encoder.tagger, "pos_labels": encoder.pos_labels}
    return Dataset.from_file(str(path), info=DatasetInfo(description=json.dumps(labelling, ensure_ascii=False)))


def read_labelling(dataset: Dataset) -> tuple[str | None, list[str] | None]:
    """Tagger and labels of a data set that [`encode_corpus`] made; `None` where it does not say so."""
    try:
        labelling = json.loads(dataset.info.description)
    except ValueError:
        return None, None
    known = labelling if isinstance(labelling, dict) else {}
    return known.get("tagger"), known.get("pos_labels")


def _write_whole(path, *contents) -> None:
    """Writes the file, unless another process is doing so; then waits for it."""
    with ProcessLock(path.with_suffix(".lock")).held():
        if not path.exists():
            # What a killed process left behind is written over.
            unfinished = path.with_suffix(".part")
            try:
                _write(unfinished, *contents)
                os.replace(unfinished, path)
            finally:
                unfinished.unlink(missing_ok=True)


def _write(path, corpus, count, encoder, batch_size, progress) -> None:
    from datasets import Features, Sequence, Value
    from datasets.arrow_writer import ArrowWriter

    columns = {"input_ids": Sequence(Value("int32"))}
    if encoder.tags is not None:
        columns["pos_labels"] = Sequence(Value("int16"))
    columns |= {"mask_class": Sequence(Value("int8")), "mask_unit": Sequence(Value("int16"))}
    columns |= {"length": Value("int32"), "text_key": Value("int64")}
    with ArrowWriter(path=str(path), features=Features(columns)) as writer:
        done = 0
        for batch in _batches(corpus, batch_size):
            texts, words = zip(*batch, strict=True)
            encoded = encoder.encode(texts, words)
            writer.write_batch({name: encoded[name] for name in columns})
            done += len(batch)
            if progress is not None:
                progress(done, count)
        writer.finalize()


def _batches(corpus: Iterable, size: int) -> Iterator[list]:
    items = iter(corpus)
    while batch := list(islice(items, size)):
        yield batch


def _fingerprint(corpus: Iterable, encoder: PreTrainingEncoder) -> tuple[int, str]:
    """Number of texts, and a hash of all that the columns depend on."""
    processor = encoder.processor
    fields: dict[str, Any] = {"version": VERSION, "tagger": encoder.tagger, "tags": encoder.tags}
    for name in ("language", "numerals", "indexed_numbers", "num_index_tokens", "max_length"):
        fields[name] = getattr(processor, name)
    fields["tokenizer"] = tokenizer_settings(processor.tokenizer)
    fields["keywords"] = read_keywords(processor.language)
    digest, count = hashlib.blake2b(json.dumps(fields).encode(), digest_size=12), 0
    for text, words in corpus:
        record = [text, *(f"{word.tag} {word.start} {word.end}" for word in words or ())]
        digest.update("\0".join(record).encode("utf-8", "surrogatepass") + b"\n")
        count += 1
    return count, digest.hexdigest()

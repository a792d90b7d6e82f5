"""Cache of encoded pretraining texts in memory-mapped Arrow files."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...problems.keywords import read_keywords
from ...store.row_store import RowStore
from ..batches.mwp_processor import tokenizer_settings
from ..data_error import DataError
from .pretraining_encoder import PreTrainingEncoder


if TYPE_CHECKING:
    from datasets import Dataset

VERSION = 3  # Version of the column format. Files with a different version are not read.
EMPTY = "the corpus is empty. Pass at least one text"


def encode_corpus(
    corpus: Iterable,
    encoder: PreTrainingEncoder,
    cache_dir: str | os.PathLike,
    batch_size: int = 1000,
    progress: Callable[[int, int | None], None] | None = None,
) -> Dataset:
    """
    Encode a corpus into Arrow files, or reuse existing files. Memory use does not grow with the corpus.

    The folder name contains a fingerprint of the texts, tags, tokenizer, number masking and keywords. If a file is
    damaged or missing, the corpus is encoded again, with a warning.

    Args:
        corpus (iterable of `(str, list[TaggedWord] | None)`): Pairs of text and tagged words: a [`TaggedCorpus`] or a
            list. The corpus is iterated over twice.
        encoder ([`PreTrainingEncoder`]): Encoder of the texts.
        cache_dir (`str`): Folder in which the folder of the files is created.
        batch_size (`int`, *optional*, defaults to 1000): Number of texts that are encoded at a time.
        progress (`Callable[[int, int | None], None]`, *optional*): Called with the number of encoded texts and the
            total number.

    Returns:
        `datasets.Dataset`: the columns that [`~PreTrainingEncoder.encode`] returns. [`read_labelling`] returns the
        tagger and the labels of this dataset.

    Raises:
        DataError: The corpus is empty, or a tag is unknown to the encoder.
        OSError: The files cannot be written.
    """
    from datasets import Dataset, DatasetInfo, concatenate_datasets

    count, fingerprint = _fingerprint(corpus, encoder)
    if not count:
        raise DataError(EMPTY)
    folder = Path(cache_dir) / f"encoded-{fingerprint}"
    store = RowStore(folder, fingerprint)
    with store.locked():
        if len(store) < count:
            store.clear()
            _write(store, corpus, count, encoder, batch_size, progress)
    labelling = {"tagger": encoder.tagger, "pos_labels": encoder.pos_labels}
    info = DatasetInfo(description=json.dumps(labelling, ensure_ascii=False))
    return concatenate_datasets([Dataset.from_file(str(path), info=info) for path in store.paths])


def read_labelling(dataset: Dataset) -> tuple[str | None, list[str] | None]:
    """Return the tagger and labels of a dataset made by [`encode_corpus`], or `(None, None)` for any other dataset."""
    try:
        labelling = json.loads(dataset.info.description)
        return labelling["tagger"], labelling["pos_labels"]
    except (ValueError, KeyError, TypeError):
        return None, None


def _write(store, corpus, count, encoder, batch_size, progress) -> None:
    import pyarrow as pa

    columns = {"input_ids": pa.list_(pa.int32())}
    if encoder.tags is not None:
        columns["pos_labels"] = pa.list_(pa.int16())
    columns |= {"mask_class": pa.list_(pa.int8()), "mask_unit": pa.list_(pa.int16())}
    columns |= {"length": pa.int32(), "text_key": pa.int64()}
    items, done = iter(corpus), 0
    with store.writing(pa.schema(columns)):
        while batch := list(islice(items, batch_size)):
            store.append(encoder.encode(*zip(*batch, strict=True)))
            done += len(batch)
            if progress is not None:
                progress(done, count)


def _fingerprint(corpus: Iterable, encoder: PreTrainingEncoder) -> tuple[int, str]:
    """Return the number of texts and a hash of all inputs that determine the columns."""
    processor = encoder.processor
    fields: dict[str, Any] = {"version": VERSION, "tagger": encoder.tagger, "tags": encoder.tags, **processor.settings}
    fields["tokenizer"] = tokenizer_settings(processor.tokenizer)
    fields["keywords"] = read_keywords(processor.language)
    digest, count = hashlib.blake2b(json.dumps(fields).encode(), digest_size=12), 0
    for text, words in corpus:
        record = [text, *(f"{word.tag} {word.start} {word.end}" for word in words or ())]
        digest.update("\0".join(record).encode("utf-8", "surrogatepass") + b"\n")
        count += 1
    return count, digest.hexdigest()

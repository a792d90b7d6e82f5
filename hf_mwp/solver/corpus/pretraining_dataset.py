"""Encoding of a corpus into memory-mapped Arrow files, checks of its labels, and its validation split."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from itertools import chain, compress, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hf_mwp.compress.models.fingerprints import tokenizer_settings
from hf_mwp.runtime.problems.keywords import read_keywords
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.row_store import RowStore

from .pretraining_encoder import PreTrainingEncoder, pos_label_list
from .tagged_corpus import Progress


if TYPE_CHECKING:
    from datasets import Dataset

VERSION = 3  # Version of the column format. Files with a different version are not read.
EMPTY = "the corpus is empty. Pass at least one text"
ENCODED_COLUMNS = ("input_ids", "mask_class", "mask_unit", "text_key")


def prepare_texts(
    texts: Any, config: Any, processor: MwpProcessor, cache_dir: str | Path, with_tags: bool, progress: Progress = None
) -> Any:
    """Encode the texts of a corpus if they are not encoded yet. `texts` is a [`TaggedCorpus`], a sequence of texts or
    of pairs of text and tagged words, or the result of [`encode_corpus`]. Without `with_tags`, tags only mark quantity
    words, so that the same tokens are masked as with tagging. A config without labels gets those of the corpus. Raises
    `ValueError` if there is no text, or with tags, if tags are missing or differ from the tags of the tagging head."""
    if not len(texts):
        raise DataError(EMPTY)
    if hasattr(texts, "column_names"):
        needed = (*ENCODED_COLUMNS, "pos_labels") if with_tags else ENCODED_COLUMNS
        for name in needed:
            if name not in texts.column_names:
                raise DataError(
                    f"the dataset has no column {name!r} (columns: {', '.join(texts.column_names)}). Pass a corpus, "
                    "a list of texts, or the result of `encode_corpus`. With `pos_loss_weight`, texts must be tagged"
                )
        if with_tags:
            _check_labels(config, *_read_labelling(texts))
        return texts.with_format("numpy")
    tagger = getattr(texts, "tagger", None)
    corpus = text_pairs(texts)
    tags = None
    if with_tags:
        # In a `TaggedCorpus` every text has tagged words. Check any other corpus.
        if not tagger:
            _check_tagged(corpus)
        tags = getattr(texts, "tags", None)
        if config.pos_labels is not None:
            tags = sorted({label[2:] for label in config.pos_labels}.union(tags or ()))
        elif tags is None:
            tagged_words = chain.from_iterable(words for _, words in corpus)
            tags = sorted({word.tag for word in tagged_words})
        _check_labels(config, tagger, pos_label_list(tags))
    # Models without a tagging head have no `pos_tagger`.
    encoder = PreTrainingEncoder(processor, tags, tagger or getattr(config, "pos_tagger", None))
    return encode_corpus(corpus, encoder, cache_dir, progress=progress).with_format("numpy")


def text_pairs(texts: Any) -> Sequence:
    """Return pairs of text and tagged words, with `None` for texts without tags."""
    if hasattr(texts, "tagger"):
        return texts
    pairs = []
    for text in texts:
        pairs.append((text, None) if isinstance(text, str) else text)
    return pairs


def _check_tagged(corpus: Sequence) -> None:
    """Raise `DataError` if a text has no tagged words."""
    for index, (_, words) in enumerate(corpus):
        if words is None:
            raise DataError(
                f"text {index} has no tags, which `pos_loss_weight` needs. Tag the corpus with `tag_corpus`, or set "
                "`pos_loss_weight=0`"
            )


def check_tagger(config: Any, tagger: str | None) -> None:
    """Raise `ValueError` if the labels of the tagging head come from a different tagger."""
    head_tagger = config.pos_tagger
    if head_tagger is None or tagger is None:
        return
    if head_tagger.partition(":")[0] != tagger.partition(":")[0]:
        raise ValueError(
            f"The tagging head has the labels of {head_tagger}, but the texts were tagged with {tagger}. Tag the "
            f"texts with {head_tagger}, or create a new head (`new_pos_head`; "
            "`MwpStudentForPreTraining.from_encoder(model, pos_labels=...)`)."
        )


def _check_labels(config: Any, tagger: str | None, labels: list[str] | None) -> None:
    """Raise `ValueError` unless the tagging head has the labels of the corpus. A config without labels gets them."""
    check_tagger(config, tagger)
    if labels is None:
        return
    if config.pos_labels is None:
        if config.num_pos_tags != len(labels):
            raise ValueError(
                f"The tagging head has {config.num_pos_tags} labels, but the corpus needs {len(labels)}. Set "
                "`pos_labels=pos_label_list(corpus.tags)` in the config of the model."
            )
        config.pos_labels = labels
        config.pos_tagger = tagger
    elif config.pos_labels != labels:
        unknown = [label for label in labels if label not in config.pos_labels]
        raise ValueError(
            f"The tagging head lacks labels of the corpus ({', '.join(unknown[:4]) or 'or has a different order'}). "
            f"It was made for {config.pos_tagger or 'a different tagger'} and different texts. Set `new_pos_head`."
        )


@checked
def encode_corpus(
    corpus: Iterable,
    encoder: PreTrainingEncoder,
    cache_dir: str | Path,
    batch_size: int = 1000,
    progress: Progress = None,
) -> Dataset:
    """Encode a corpus, pairs of text and tagged words (`None` for a text without tags), into Arrow files in a
    subfolder of `cache_dir`, and return the columns of [`~PreTrainingEncoder.encode`]. Memory use does not grow with
    the corpus.

    Existing files are reused: the folder name contains a fingerprint of the texts, tags, tokenizer, number masking and
    keywords. If a file is damaged or missing, the corpus is encoded again, with a warning. Raises `DataError` if the
    corpus is empty or a tag is unknown to the encoder, and `OSError` if the files cannot be written.
    """
    import pyarrow as pa
    from datasets import Dataset, DatasetInfo, concatenate_datasets

    num_texts, fingerprint = _fingerprint(corpus, encoder)
    if not num_texts:
        raise DataError(EMPTY)
    store = RowStore(Path(cache_dir) / f"encoded-{fingerprint}", fingerprint)
    columns = {"input_ids": pa.list_(pa.int32())}
    if encoder.tags is not None:
        columns["pos_labels"] = pa.list_(pa.int16())
    columns |= {"mask_class": pa.list_(pa.int8()), "mask_unit": pa.list_(pa.int16())}
    columns |= {"length": pa.int32(), "text_key": pa.int64()}
    with store.locked():
        if len(store) < num_texts:
            store.clear()
            pairs = iter(corpus)
            num_encoded = 0
            with store.writing(pa.schema(columns)):
                while batch := list(islice(pairs, batch_size)):
                    texts, words = zip(*batch, strict=True)
                    store.append(encoder.encode(texts, words))
                    num_encoded += len(batch)
                    if progress is not None:
                        progress(num_encoded, num_texts)
    labelling = {"tagger": encoder.tagger, "pos_labels": encoder.pos_labels}
    info = DatasetInfo(description=json.dumps(labelling, ensure_ascii=False))
    return concatenate_datasets([Dataset.from_file(str(path), info=info) for path in store.paths])


def _fingerprint(corpus: Iterable, encoder: PreTrainingEncoder) -> tuple[int, str]:
    """Return the number of texts and a hash of all inputs that determine the columns."""
    processor = encoder.processor
    fields: dict[str, Any] = {"version": VERSION, "tagger": encoder.tagger, "tags": encoder.tags, **processor.settings}
    fields["tokenizer"] = tokenizer_settings(processor.tokenizer)
    fields["keywords"] = read_keywords(processor.language)
    digest = hashlib.blake2b(json.dumps(fields).encode(), digest_size=12)
    num_texts = 0
    for text, words in corpus:
        record = [text]
        for word in words or ():
            record.append(f"{word.tag} {word.start} {word.end}")
        digest.update("\0".join(record).encode("utf-8", "surrogatepass") + b"\n")
        num_texts += 1
    return num_texts, digest.hexdigest()


def _read_labelling(dataset: Dataset) -> tuple[str | None, list[str] | None]:
    """Return the tagger and labels of a dataset made by [`encode_corpus`], or `(None, None)` for any other dataset."""
    try:
        labelling = json.loads(dataset.info.description)
        return labelling["tagger"], labelling["pos_labels"]
    except (ValueError, KeyError, TypeError):
        return None, None


def texts_of_corpus(corpus: Any, encoded: Any, learned: Any, sources: Sequence[str]) -> TrainingTexts:
    """Return digests of the training texts, without the held-out texts of the corpus."""
    if corpus is None:
        return TrainingTexts()
    if hasattr(corpus, "column_names"):
        return TrainingTexts(unknown=("encoded texts",))
    is_learned = np.isin(_text_keys(encoded), _text_keys(learned))
    pairs = compress(text_pairs(corpus), is_learned)
    return TrainingTexts.from_texts((text for text, _ in pairs), sources)


def _text_keys(dataset: Any) -> np.ndarray:
    return np.asarray(dataset.with_format("numpy")["text_key"][:])


def split_texts(dataset: Any, fraction: float, seed: int) -> tuple[Any, Any]:
    """Hold out a share of the encoded texts, at least one text, and return the training and the held-out texts. The
    choice depends only on the seed and on each text without its numbers, so it hardly changes when texts are added."""
    keys = _text_keys(dataset)
    distinct = np.unique(keys).tolist()
    distinct.sort(key=lambda key: hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest())
    held_out = np.isin(keys, distinct[: max(1, round(fraction * len(distinct)))])
    if held_out.all():
        raise DataError("the corpus has too few texts for a validation split. Set `validation_fraction=0`")
    return dataset.select(np.flatnonzero(~held_out)), dataset.select(np.flatnonzero(held_out))

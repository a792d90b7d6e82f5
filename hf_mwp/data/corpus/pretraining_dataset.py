"""Preparation of a corpus for pretraining."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..batches.mwp_processor import MwpProcessor
from ..data_error import DataError
from ..training_texts import TrainingTexts
from .encoded_corpus import EMPTY, encode_corpus, read_labelling
from .pretraining_encoder import PreTrainingEncoder, pos_label_list


ENCODED_COLUMNS = ("input_ids", "mask_class", "mask_unit", "text_key")


def prepare_texts(
    texts: Any,
    config: Any,
    processor: MwpProcessor,
    cache_dir: str | Path,
    with_tags: bool = True,
    progress: Callable[[int, int | None], None] | None = None,
) -> Any:
    """
    Encode the texts of a corpus, unless they are encoded.

    Args:
        texts ([`TaggedCorpus`], `Sequence` or `datasets.Dataset`): A tagged corpus, a sequence of texts or of (text,
            tagged words), or the result of [`encode_corpus`].
        config (`PreTrainedConfig`): Config of the model, with the labels and the tagger of its tagging head.
        with_tags (`bool`, *optional*, defaults to `True`): Whether tagging is learned. If not, the tags of tagged
            texts only show which words are quantities, so that the same tokens are masked.

    Raises:
        ValueError: there is no text or, with tags, the tags are missing or not those of the model's head.
    """
    if not len(texts):
        raise DataError(EMPTY)
    if hasattr(texts, "column_names"):
        needed = (*ENCODED_COLUMNS, "pos_labels") if with_tags else ENCODED_COLUMNS
        if missing := [name for name in needed if name not in texts.column_names]:
            raise DataError(
                f"the data set has no column {missing[0]!r}, but {', '.join(texts.column_names)}. Pass a corpus, "
                "texts or the result of `encode_corpus`; tagging (`pos_loss_weight`) needs tagged texts"
            )
        if with_tags:
            _check_encoded_labels(config, texts)
        return texts.with_format("numpy")
    tagger, corpus, tags = getattr(texts, "tagger", None), _text_pairs(texts), None
    if with_tags:
        # Only a corpus that is not a `TaggedCorpus` can have texts without words.
        bare = () if tagger is not None else (index for index, (_, words) in enumerate(corpus) if words is None)
        for index in bare:
            raise DataError(
                f"text {index} has no tags, which `pos_loss_weight` needs: tag the corpus with `tag_corpus`, or set "
                "`pos_loss_weight=0`"
            )
        check_tagger(config, tagger)
        tags = getattr(texts, "tags", None)
        if config.pos_labels is not None:
            tags = sorted({label[2:] for label in config.pos_labels} | set(tags or ()))
        elif tags is None:
            tags = sorted({word.tag for _, words in corpus for word in words})
        _check_labels(config, pos_label_list(tags), tagger)
    # Models without a tagging head have no `pos_tagger`.
    encoder = PreTrainingEncoder(processor, tags, tagger or getattr(config, "pos_tagger", None))
    return encode_corpus(corpus, encoder, cache_dir, progress=progress).with_format("numpy")


def _text_pairs(texts: Any) -> Sequence:
    """Return the pairs (text, tagged words or `None`) of a corpus."""
    return texts if hasattr(texts, "tagger") else [(each, None) if isinstance(each, str) else each for each in texts]


def check_tagger(config: Any, tagger: str | None) -> None:
    """Raise `ValueError` if the model's tagging head was made for the labels of another tagger."""
    ours = config.pos_tagger
    if ours is not None and tagger is not None and ours.partition(":")[0] != tagger.partition(":")[0]:
        raise ValueError(
            f"The model's tagging head has the labels of {ours}, but the texts are tagged by {tagger}. Tag them with "
            f"{ours}, or give the model a new head (`new_pos_head`; `MwpStudentForPreTraining.from_encoder(model, "
            "pos_labels=...)`)."
        )


def _check_labels(config: Any, labels: list[str], tagger: str | None) -> None:
    """Raise `ValueError` if the model's head has other labels; set them in its config if it has none."""
    if config.pos_labels is None:
        if config.num_pos_tags != len(labels):
            raise ValueError(
                f"The model's tagging head has {config.num_pos_tags} labels, but the corpus needs {len(labels)}. "
                "Build it with `pos_labels=pos_label_list(corpus.tags)` in its config."
            )
        config.pos_labels, config.pos_tagger = labels, tagger
    elif config.pos_labels != labels:
        unknown = [label for label in labels if label not in config.pos_labels]
        raise ValueError(
            f"The model's tagging head lacks labels of the corpus ({', '.join(unknown[:4]) or 'in another order'}): "
            f"it was made for {config.pos_tagger or 'another tagger'} with other texts. Give it a new head "
            "(`new_pos_head`)."
        )


def _check_encoded_labels(config: Any, dataset: Any) -> None:
    """Raise `ValueError` if encoded texts have other labels than the model's head."""
    if config.pos_labels is None:
        raise DataError(
            "the labels of the model's tagging head are not known: set `pos_labels` of its config to those of the "
            "`PreTrainingEncoder`"
        )
    tagger, labels = read_labelling(dataset)
    check_tagger(config, tagger)
    if labels is not None:
        _check_labels(config, labels, tagger)


def texts_of_corpus(corpus: Any, encoded: Any, learned: Any, sources: Sequence[str]) -> TrainingTexts:
    """Return digests of the training texts: those of the corpus that are not held out."""
    if corpus is None:
        return TrainingTexts()
    if hasattr(corpus, "column_names"):
        return TrainingTexts(unknown=("encoded texts",))
    keys, kept = (np.asarray(part.with_format("numpy")["text_key"][:]) for part in (encoded, learned))
    texts = (text for (text, _), is_kept in zip(_text_pairs(corpus), np.isin(keys, kept), strict=True) if is_kept)
    return TrainingTexts.from_texts(texts, sources)


def split_texts(dataset: Any, fraction: float, seed: int) -> tuple[Any, Any]:
    """
    Hold out a share of encoded texts, at least one, and return training and held-out texts. The choice depends only on
    the seed and each text without its numbers, so that it hardly changes when texts are added.
    """
    keys = np.asarray(dataset.with_format("numpy")["text_key"][:])
    distinct = {int(key): hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest() for key in np.unique(keys)}
    chosen = sorted(distinct, key=distinct.__getitem__)[: max(1, round(fraction * len(distinct)))]
    held_out = np.isin(keys, chosen)
    if held_out.all():
        raise DataError("the corpus has too few texts to hold some out: set `validation_fraction=0`")
    return dataset.select(np.flatnonzero(~held_out)), dataset.select(np.flatnonzero(held_out))

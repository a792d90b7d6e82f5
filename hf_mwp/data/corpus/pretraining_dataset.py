"""Functions that prepare a corpus for pretraining: encoding, checks of the labels, and the validation split."""

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
    Encode the texts of a corpus if they are not encoded yet.

    Args:
        texts ([`TaggedCorpus`], `Sequence` or `datasets.Dataset`): A tagged corpus, a sequence of texts, a sequence of
            pairs of text and tagged words, or the result of [`encode_corpus`].
        config (`PreTrainedConfig`): Config of the model, with the labels and the tagger of its tagging head.
        processor ([`MwpProcessor`]): Processor that masks numbers and tokenizes.
        cache_dir (`str` or `Path`): See [`encode_corpus`].
        with_tags (`bool`, *optional*, defaults to `True`): Whether tagging is trained. If not, tags only mark
            quantity words, so that the same tokens are masked as with tagging.
        progress (`Callable[[int, int | None], None]`, *optional*): See [`encode_corpus`].

    Raises:
        ValueError: There is no text, or with tags: tags are missing or differ from the tags of the tagging head.
    """
    if not len(texts):
        raise DataError(EMPTY)
    if hasattr(texts, "column_names"):
        needed = (*ENCODED_COLUMNS, "pos_labels") if with_tags else ENCODED_COLUMNS
        if missing := [name for name in needed if name not in texts.column_names]:
            raise DataError(
                f"the dataset has no column {missing[0]!r} (columns: {', '.join(texts.column_names)}). Pass a corpus, "
                "a list of texts, or the result of `encode_corpus`. With `pos_loss_weight`, texts must be tagged"
            )
        if with_tags:
            _check_encoded_labels(config, texts)
        return texts.with_format("numpy")
    tagger, corpus, tags = getattr(texts, "tagger", None), _text_pairs(texts), None
    if with_tags:
        # In a `TaggedCorpus` every text has tagged words. Check any other corpus.
        bare = () if tagger is not None else (index for index, (_, words) in enumerate(corpus) if words is None)
        for index in bare:
            raise DataError(
                f"text {index} has no tags, which `pos_loss_weight` needs. Tag the corpus with `tag_corpus`, or set "
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
    """Return pairs of text and tagged words, with `None` for texts without tags."""
    return texts if hasattr(texts, "tagger") else [(each, None) if isinstance(each, str) else each for each in texts]


def check_tagger(config: Any, tagger: str | None) -> None:
    """Raise `ValueError` if the labels of the tagging head come from a different tagger."""
    ours = config.pos_tagger
    if ours is not None and tagger is not None and ours.partition(":")[0] != tagger.partition(":")[0]:
        raise ValueError(
            f"The tagging head has the labels of {ours}, but the texts were tagged with {tagger}. Tag the texts with "
            f"{ours}, or create a new head (`new_pos_head`; `MwpStudentForPreTraining.from_encoder(model, "
            "pos_labels=...)`)."
        )


def _check_labels(config: Any, labels: list[str], tagger: str | None) -> None:
    """
    Raise `ValueError` if the labels of the corpus are not those of the tagging head. Set the labels in the config if
    it has none.
    """
    if config.pos_labels is None:
        if config.num_pos_tags != len(labels):
            raise ValueError(
                f"The tagging head has {config.num_pos_tags} labels, but the corpus needs {len(labels)}. Set "
                "`pos_labels=pos_label_list(corpus.tags)` in the config of the model."
            )
        config.pos_labels, config.pos_tagger = labels, tagger
    elif config.pos_labels != labels:
        unknown = [label for label in labels if label not in config.pos_labels]
        raise ValueError(
            f"The tagging head lacks labels of the corpus ({', '.join(unknown[:4]) or 'or has a different order'}). "
            f"It was made for {config.pos_tagger or 'a different tagger'} and different texts. Set `new_pos_head`."
        )


def _check_encoded_labels(config: Any, dataset: Any) -> None:
    """Raise `ValueError` if the labels of encoded texts differ from the labels of the tagging head."""
    if config.pos_labels is None:
        raise DataError(
            "the config of the model has no `pos_labels` for its tagging head. Set `config.pos_labels` to the "
            "`pos_labels` of the `PreTrainingEncoder`"
        )
    tagger, labels = read_labelling(dataset)
    check_tagger(config, tagger)
    if labels is not None:
        _check_labels(config, labels, tagger)


def texts_of_corpus(corpus: Any, encoded: Any, learned: Any, sources: Sequence[str]) -> TrainingTexts:
    """Return digests of the training texts, without the held-out texts of the corpus."""
    if corpus is None:
        return TrainingTexts()
    if hasattr(corpus, "column_names"):
        return TrainingTexts(unknown=("encoded texts",))
    keys, kept = (np.asarray(part.with_format("numpy")["text_key"][:]) for part in (encoded, learned))
    texts = (text for (text, _), is_kept in zip(_text_pairs(corpus), np.isin(keys, kept), strict=True) if is_kept)
    return TrainingTexts.from_texts(texts, sources)


def split_texts(dataset: Any, fraction: float, seed: int) -> tuple[Any, Any]:
    """
    Hold out a share of the encoded texts, at least one text, and return the training and the held-out texts. The
    choice depends only on the seed and on each text without its numbers, so it hardly changes when texts are added.
    """
    keys = np.asarray(dataset.with_format("numpy")["text_key"][:])
    distinct = {int(key): hashlib.blake2b(f"{seed} {key}".encode(), digest_size=8).digest() for key in np.unique(keys)}
    chosen = sorted(distinct, key=distinct.__getitem__)[: max(1, round(fraction * len(distinct)))]
    held_out = np.isin(keys, chosen)
    if held_out.all():
        raise DataError("the corpus has too few texts for a validation split. Set `validation_fraction=0`")
    return dataset.select(np.flatnonzero(~held_out)), dataset.select(np.flatnonzero(held_out))

"""Checks before a training that the tokenizers of student and teacher can read the texts."""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from transformers.utils import logging

from hf_mwp.utils.control_characters import show_controls
from hf_mwp.utils.language import LATIN_WORD, language_of
from hf_mwp.utils.unknown_tokens import TRAINING_LIMIT, share_of_unknown, unknown_tokens_warning
from hf_mwp.utils.usage_error import UsageError


logger = logging.get_logger(__name__)

# Unknown tokens are counted on this number of rows, or on fewer if reading them takes longer than a time in seconds.
SAMPLE_SIZE = 200
TIME_LIMIT = 0.5
# Well-known encoders whose vocabulary has the words of a language; `None` is any other language.
FITTING_ENCODERS = {"zh": "bert-base-chinese", "en": "bert-base-uncased", None: "bert-base-multilingual-cased"}
# Number of characters of a text and number of its unknown words in a warning.
SHOWN_CHARACTERS = 40
SHOWN_WORDS = 3


def sample_rows(rows: Any) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield rows at equal distances with their indices; none if the rows are a stream or not encoded texts."""
    if not hasattr(rows, "__len__") or not hasattr(rows, "__getitem__"):
        return
    num_samples = min(SAMPLE_SIZE, len(rows))
    end = time.monotonic() + TIME_LIMIT
    for number in range(num_samples):
        index = number * len(rows) // num_samples
        row = rows[index]
        if not isinstance(row, Mapping) or row.get("input_ids") is None:
            return
        yield index, row
        if time.monotonic() > end:
            return


def special_ids(processing: Any) -> tuple[int | None, set[int]]:
    """Return the id of the unknown token, and the ids of other special tokens, which count as no words. The first is
    `None` if a tokenizer has no such token, or uses it for something else, as those at byte level do."""
    tokenizer = getattr(processing, "tokenizer", processing)
    names = ("pad_token_id", "eos_token_id", "bos_token_id", "cls_token_id", "sep_token_id", "mask_token_id")
    unknown = getattr(tokenizer, "unk_token_id", None)
    if unknown in [getattr(tokenizer, name, None) for name in names]:
        unknown = None
    special = {*getattr(tokenizer, "all_special_ids", ()), *getattr(processing, "number_token_ids", ())}
    return unknown, special - {unknown}


def warn_of_unknown_tokens(
    sample: Iterable[tuple[Sequence[int], str | None]], processing: Any, tokenizer_name: str = "the tokenizer"
) -> None:
    """
    Log a warning if more than 5 % of the tokens of training texts are unknown, with the share, an example and the name
    of a fitting encoder.

    Args:
        sample (`Iterable[tuple[Sequence[int], str | None]]`): Token ids of some texts and, if known, the texts.
        processing ([`MwpProcessor`] or tokenizer): Encoded the texts. Without an unknown token there is no warning.
        tokenizer_name (`str`, *optional*, defaults to `"the tokenizer"`): Name of the tokenizer in the warning.
    """
    unknown, special = special_ids(processing)
    if unknown is None:
        return
    all_ids: list[int] = []
    highest_share = 0.0
    for input_ids, text in sample:
        ids = _flat(input_ids)
        all_ids += ids
        share = share_of_unknown(ids, unknown, special)
        if share > highest_share:
            highest_share = share
            worst_ids = ids
            worst_text = text
    if not highest_share:
        return
    example, language = _example(worst_ids, worst_text, processing, unknown)
    encoder = FITTING_ENCODERS[language]
    message = unknown_tokens_warning(
        share_of_unknown(all_ids, unknown, special),
        TRAINING_LIMIT,
        tokens="the tokens of the training texts",
        vocabulary=f"the vocabulary of {tokenizer_name}, such as {example}",
        advice=f"The model cannot tell them apart. Use an encoder that knows these words, such as {encoder!r}.",
    )
    if message is not None:
        logger.warning(show_controls(message))


def check_shared_tokens(rows: Iterable[tuple[int, Mapping[str, Any]]], num_shared: int, processing: Any) -> None:
    """Raise `UsageError` if numbered rows have tokens that are not among the first `num_shared`, which the teacher
    knows."""
    tokenizer = getattr(processing, "tokenizer", processing)
    for number, row in rows:
        highest = max(_flat(row["input_ids"]))
        token = tokenizer.convert_ids_to_tokens(highest)
        # A number without token is not in the student's tokenizer either.
        if highest >= num_shared and token is not None:
            raise UsageError(
                f"Row {number} of the training rows has the token {token!r} (number {highest}), which is not in "
                "the teacher's tokenizer. Leave such rows out, or add the token to the teacher."
            )


def _flat(input_ids: Sequence) -> list[int]:
    """Return token ids in one list. Rows of multiple choice have a list for each choice."""
    if len(input_ids) and np.ndim(input_ids[0]):
        return np.concatenate([np.asarray(choice) for choice in input_ids]).tolist()
    return np.asarray(input_ids).ravel().tolist()


def _example(ids: Sequence[int], text: str | None, processing: Any, unknown: int) -> tuple[str, str | None]:
    """Return unknown words in the beginning of a text as an example, and their language."""
    tokenizer = getattr(processing, "tokenizer", processing)
    if text is None:
        beginning = tokenizer.decode(ids)[:SHOWN_CHARACTERS]
        return repr(beginning), getattr(processing, "language", None)
    words = unknown_words(text, tokenizer, unknown)
    beginning = repr(text[:SHOWN_CHARACTERS])
    if not words:
        return beginning, _language(text)
    listed = ", ".join(map(repr, words[:SHOWN_WORDS]))
    return f"{listed} in {beginning}", _language("".join(words))


def unknown_words(text: str, tokenizer: Any, unknown: int) -> list[str]:
    """Return the different words of a text that a fast tokenizer does not know; none if the tokenizer is slow."""
    if not getattr(tokenizer, "is_fast", False):
        return []
    encoded = tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
    words: list[str] = []
    for token, (start, end) in zip(encoded["input_ids"], encoded["offset_mapping"], strict=True):
        word = text[start:end].strip()
        if token == unknown and word and word not in words:
            words.append(word)
    # Numbers last, as most processors replace them by placeholders.
    return sorted(words, key=str.isdecimal)


def _language(words: str) -> str | None:
    """Return the language of unknown words, or `None` if they are neither Chinese nor Latin."""
    language = language_of(words)
    return language if language == "zh" or LATIN_WORD.search(words) else None

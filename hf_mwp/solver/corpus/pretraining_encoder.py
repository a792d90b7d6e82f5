"""Encoder of texts and their tagged words for pretraining."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from hf_mwp.runtime.problems import MathWordProblem, find_keywords
from hf_mwp.runtime.tagging.pos_tagger import QUANTITY_TAGS
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.data_error import DataError
from hf_mwp.utils.checked_types import checked


if TYPE_CHECKING:
    from hf_mwp.runtime.tagging.pos_tagger import TaggedWord

SPECIAL, ORDINARY, KEYWORD, NUMBER = range(4)
"""Token classes for masking: never masked, ordinary, part of a mathematical keyword, part of a quantity."""


@checked
def pos_label_list(tags: Sequence[str]) -> list[str]:
    """Return the labels `["B-n", "I-n", "B-v", ...]` of the sorted tags. `B-` begins a word, `I-` continues it."""
    return [f"{prefix}-{tag}" for tag, prefix in product(sorted(set(tags)), "BI")]


class PreTrainingEncoder:
    """Encoder of texts for masked language modelling and tagging. Numbers are masked as in the input of a solver.
    `tags` are all tags that words may have; without them the result has no tagging labels, and tagged words only mark
    quantities. The name of the `tagger` determines the tags that mark quantities."""

    @checked
    def __init__(self, processor: MwpProcessor, tags: Sequence[str] | None = None, tagger: str | None = None) -> None:
        self.processor = processor
        self.tagger = tagger
        self.tags = None if tags is None else sorted(set(tags))
        self.pos_labels = None if tags is None else pos_label_list(tags)
        self._tag_ids = {tag: index for index, tag in enumerate(self.tags or ())}
        self._quantities = QUANTITY_TAGS.get((tagger or "").partition(":")[0], frozenset())

    def encode(
        self, texts: Sequence[str], words: Sequence[Sequence[TaggedWord] | None] | None = None
    ) -> dict[str, list[Any]]:
        """Encode texts (with their numbers) without padding. Return for each text `input_ids`, `length` (number of
        tokens), `text_key` (hash of the text without its numbers), and for each token

        - `pos_labels`, if the encoder has tags: index in [`pos_label_list`], or -100 for a token outside all words. A
          number placeholder has the label of the word in which the number begins.
        - `mask_class`: 0 (special or unknown, never masked), 1 (ordinary), 2 (part of a mathematical keyword) or 3
          (part of a quantity word, or a number placeholder).
        - `mask_unit`: number of its unit. The tokens of a keyword or quantity word are masked together.

        Raises `DataError` if words are missing or not in their text, or if a tag is unknown to the encoder.
        """
        if self.tags is not None and words is None:
            raise DataError("the encoder has tags, but `words` is missing. Pass the tagged words of each text")
        problems = [self.processor.problem(text) for text in texts]
        encoded = self.processor.tokenize(problems)
        unknown = self.processor.tokenizer.unk_token_id
        if unknown is None:
            unknown = -1
        columns: dict[str, list[Any]] = {"input_ids": [], "mask_class": [], "mask_unit": []}
        if self.tags is not None:
            columns["pos_labels"] = []
        if words is None:
            words = [None] * len(problems)
        rows = zip(problems, words, encoded["input_ids"], encoded["offset_mapping"], strict=True)
        for problem, tagged_words, ids, offsets in rows:
            ids = np.array(ids, dtype=np.int32)
            starts, ends = np.array(offsets, dtype=np.int64).reshape(-1, 2).T
            # Character at which each token begins; the last place stands for tokens that are not in the text.
            origin = np.append(self._origins(problem, self.processor.style), len(problem.text))
            at = origin[np.where(ends > starts, starts, -1)]
            word_of, class_of, span_of = self._characters(problem, tagged_words)
            classes = np.where(ids == unknown, SPECIAL, class_of[at])
            spans = span_of[at]
            # A new unit begins where the span or the class changes.
            begins = (spans < 0) | (np.diff(spans, prepend=-1) != 0) | (np.diff(classes, prepend=SPECIAL) != 0)
            columns["input_ids"].append(ids)
            columns["mask_class"].append(classes.astype(np.int8))
            columns["mask_unit"].append((np.cumsum(begins) - 1).astype(np.int16))
            if self.tags is not None:
                columns["pos_labels"].append(self._labels(tagged_words, word_of[at]))
        columns["length"] = list(map(len, columns["input_ids"]))
        columns["text_key"] = list(map(text_key, problems))
        return columns

    @staticmethod
    def _origins(problem: MathWordProblem, style: dict[str, Any]) -> np.ndarray:
        """Return the original position of each character of the masked text: in a placeholder, that of the number."""
        origin = np.arange(len(problem.masked.text(**style)))
        offsets = problem.masked.placeholder_offsets(**style)
        for (start, end), mention in zip(offsets, problem.masked.mentions, strict=True):
            # The unit inside of a number (千克 in 3千克半) follows the placeholder.
            end += len(mention.unit)
            origin[start:end] = mention.start
            if end < len(origin):
                origin[end:] += mention.end - origin[end]
        return origin

    def _characters(self, problem: MathWordProblem, words: Sequence[TaggedWord] | None):
        """Return the index of the word (or -1), the class and the span masked together (or -1) of each character, and
        at the end those of a token that is not in the text."""
        text = problem.text
        words = words or ()
        word_of = np.full(len(text) + 1, -1)
        class_of = np.full(len(text) + 1, ORDINARY)
        span_of = np.full(len(text) + 1, -1)
        class_of[-1] = SPECIAL
        for number, word in enumerate(words):
            if not 0 <= word.start < word.end <= len(text):
                raise DataError(
                    f"the tagged word {word.word!r} at {word.start}-{word.end} is not in the text {text[:60]!r}. Tag "
                    "the text again"
                )
            word_of[word.start : word.end] = number
            if word.tag in self._quantities:
                class_of[word.start : word.end] = NUMBER
                span_of[word.start : word.end] = number
        for number, (start, end) in enumerate(find_keywords(text, problem.language), start=len(words)):
            class_of[start:end] = KEYWORD
            span_of[start:end] = number
        for mention in problem.masked.mentions:
            class_of[mention.start : mention.end] = NUMBER
            span_of[mention.start : mention.end] = -1
        return word_of, class_of, span_of

    def _labels(self, words: Sequence[TaggedWord], word_of_token: np.ndarray) -> np.ndarray:
        if not words:
            return np.full(len(word_of_token), -100, dtype=np.int16)
        try:
            tags = np.array([self._tag_ids[word.tag] for word in words])
        except KeyError as error:
            raise DataError(
                f"unknown tag {error.args[0]!r}. The tags of {self.tagger or 'the tagger'} are "
                f"{', '.join(self.tags)}. Tag the text again with this tagger"
            ) from None
        continues = np.diff(word_of_token, prepend=-1) == 0
        return np.where(word_of_token < 0, -100, 2 * tags[word_of_token] + continues).astype(np.int16)


def text_key(problem: MathWordProblem) -> int:
    """Return a hash (0 to 2**63 - 1) of a text without its numbers, which is the same on all machines."""
    digest = hashlib.blake2b(problem.masked_key.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1

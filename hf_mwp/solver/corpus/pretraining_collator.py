"""Batches of encoded texts with masks for masked language modelling."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.utils.checked_types import checked

from .pretraining_encoder import KEYWORD, NUMBER, SPECIAL


_STEP = np.uint64(0x9E3779B97F4A7C15)
_CHOICE, _COUNT, _ACTION, _TOKEN = range(1, 5)


class PreTrainingCollator:
    """Data collator that pads encoded texts and masks tokens, preferring mathematical keywords and quantities.

    In each text the share `mlm_probability` of the tokens is selected, at least one token. Units (a single token, or
    all tokens of a keyword or quantity word) are drawn without replacement, with probabilities proportional to their
    weights: `keyword_weight` for a mathematical keyword, `number_weight` for a number placeholder or quantity word, 1
    for any other token. As in BERT, 80 % of the selected tokens become the mask token, 10 % a random token, and 10 %
    stay as they are. With `mlm_probability=0` no token is masked and batches have no `labels`. `keep_original` adds
    `original_ids`, `mask_class` and, if the texts have this column, `row_index` to the batches for evaluation.

    A mask depends only on the seed, the text and the epoch (set the attribute `epoch` before each epoch), not on the
    batch, the number of processes or the loader workers, so a resumed training has the same masks.

    See figure 4 of "A Compact Model for Mathematics Problem Representations Distilled from BERT" (AAAI 2025), which
    does not state the weights. Raises `ValueError` if the tokenizer has no mask token and `mlm_probability` is not 0.
    """

    @checked
    def __init__(
        self,
        processor: MwpProcessor,
        mlm_probability: float = 0.15,
        keyword_weight: float = 3.0,
        number_weight: float = 3.0,
        seed: int = 0,
        keep_original: bool = False,
    ) -> None:
        tokenizer = processor.tokenizer
        if mlm_probability and tokenizer.mask_token_id is None:
            raise ValueError(
                "The tokenizer has no mask token, which masked language modelling needs. Use a different tokenizer, "
                "or set `mlm_loss_weight=0`."
            )
        self.mlm_probability = mlm_probability
        self.seed = seed
        self.keep_original = keep_original
        self.epoch = 0
        self.weights = np.ones(4)
        self.weights[KEYWORD] = keyword_weight
        self.weights[NUMBER] = number_weight
        self.pad_id = tokenizer.pad_token_id or 0
        self.mask_id = tokenizer.mask_token_id
        special = {*tokenizer.all_special_ids, *processor.number_token_ids}
        self.random_ids = np.array([index for index in range(len(tokenizer)) if index not in special])

    def __call__(self, features: Sequence[dict[str, Any]]) -> dict[str, torch.Tensor]:
        """Return `input_ids`, `attention_mask`, `labels` (original ids of the selected tokens, -100 elsewhere) and, if
        the texts have this column, `pos_labels`, each of shape `(batch, longest)`. `masked_positions` contains the
        indices of the selected tokens in the flattened batch."""
        lengths = np.array([len(feature["input_ids"]) for feature in features])
        is_token = np.arange(lengths.max()) < lengths[:, None]
        ids = self._pad(features, "input_ids", is_token, self.pad_id)
        batch = {"input_ids": ids, "attention_mask": is_token.astype(np.int64)}
        if "pos_labels" in features[0]:
            batch["pos_labels"] = self._pad(features, "pos_labels", is_token, -100)
        classes = self._pad(features, "mask_class", is_token, SPECIAL)
        if self.keep_original:
            batch["mask_class"] = classes
            if "row_index" in features[0]:
                batch["row_index"] = np.array([feature["row_index"] for feature in features])
            if self.mlm_probability:
                batch["original_ids"] = ids
        if self.mlm_probability:
            units = self._pad(features, "mask_unit", is_token, -1)
            keys = np.array([feature["text_key"] for feature in features]).astype(np.uint64)[:, None]
            batch["input_ids"], batch["labels"] = self._mask(ids, classes, units, keys)
            batch["masked_positions"] = np.flatnonzero(batch["labels"] != -100)
        return {name: torch.from_numpy(np.ascontiguousarray(values)) for name, values in batch.items()}

    @staticmethod
    def _pad(features, name, is_token, padding) -> np.ndarray:
        padded = np.full(is_token.shape, padding, dtype=np.int64)
        padded[is_token] = np.concatenate([feature[name] for feature in features])
        return padded

    def _mask(self, ids, classes, units, keys):
        position = np.arange(ids.shape[1])[None]
        # Selecting the smallest exponential times, with the weights as rates, is a weighted draw without replacement.
        rates = np.where(classes == SPECIAL, 0.0, self.weights[classes])
        with np.errstate(divide="ignore"):
            times = -np.log1p(-self._uniform(keys, _CHOICE, np.maximum(units, 0))) / rates
        order = np.argsort(times, axis=1, kind="stable")
        rank = np.empty_like(order)
        np.put_along_axis(rank, order, np.broadcast_to(position, order.shape), axis=1)

        # Find the first and the last token of the unit of each token.
        begins = np.diff(units, axis=1, prepend=-2) != 0
        ends = np.diff(units, axis=1, append=-2) != 0
        start = np.maximum.accumulate(np.where(begins, position, 0), axis=1)
        end = np.minimum.accumulate(np.where(ends, position, ids.shape[1])[:, ::-1], axis=1)[:, ::-1]
        # Number of tokens that are drawn before the unit, and number of its tokens.
        before = rank - (position - start)
        size = end - start + 1

        # Round the number of tokens at random so that its mean is the share. Select units at least half within it.
        is_maskable = rates > 0
        num_tokens = is_maskable.sum(axis=1, keepdims=True) * self.mlm_probability
        num_tokens = np.floor(num_tokens + self._uniform(keys, _COUNT, np.zeros((1, 1), dtype=np.int64)))
        selected = is_maskable & ((2 * before + size <= 2 * num_tokens) | (before == 0))

        # Replace 80 % of the selected tokens by the mask token, and 10 % by a random token.
        action = self._uniform(keys, _ACTION, position)
        index = self._uniform(keys, _TOKEN, position) * len(self.random_ids)
        random_ids = self.random_ids[index.astype(np.int64)]
        masked = np.where(selected & (action < 0.8), self.mask_id, ids)
        masked = np.where(selected & (action >= 0.8) & (action < 0.9), random_ids, masked)
        return masked, np.where(selected, ids, -100)

    def _uniform(self, keys: np.ndarray, stream: int, counter: np.ndarray) -> np.ndarray:
        """Return pseudo-random numbers in [0, 1), determined by seed, epoch, stream, text key and counter."""
        state = np.full((1, 1), self.seed, dtype=np.int64).astype(np.uint64)
        for value in (self.epoch, stream):
            state = _scramble(state * _STEP + np.uint64(value))
        bits = _scramble(_scramble(state ^ _scramble(keys + _STEP)) + counter.astype(np.uint64) * _STEP)
        return (bits >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _scramble(values: np.ndarray) -> np.ndarray:
    """Mix the bits with the finaliser of SplitMix64 (Steele et al., OOPSLA 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))

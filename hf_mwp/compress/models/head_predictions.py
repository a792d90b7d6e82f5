"""Kinds of predictions of heads with other outputs than the logits of classes."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from .prediction_kind import PER_LABEL, PER_ROW, PER_TOKEN, PredictionKind


class AnswerSpans(PredictionKind):
    """Predictions of the first and the last token of an answer: `start_logits` and `end_logits` `(batch, tokens)`. The
    classes of a row are its tokens without padding. The loss is the mean over both outputs, as in the loss on labels
    of Transformers' models."""

    name = "first and last token of an answer"
    outputs = ("start_logits", "end_logits")
    has_values = False
    has_targets = False
    part_weight = 0.5
    storage = dict.fromkeys(outputs, PER_TOKEN)

    def class_scores(self, output: str, logits: Tensor, inputs: Mapping[str, Any] | None = None) -> Tensor:
        mask = (inputs or {}).get("attention_mask")
        if mask is None or mask.shape != logits.shape:
            return logits
        return logits.masked_fill(mask == 0, torch.finfo(logits.dtype).min)


class PretrainingHeads(PredictionKind):
    """
    Predictions of the tokens, `prediction_logits` `(batch, positions, tokens)`, and of the relation of two sentences,
    `(batch, classes)`: whether the second follows the first (BERT), or their order (ALBERT).

    Args:
        relation (`str`): Name of the second output.
    """

    name = "tokens and sentence relation"
    has_values = False
    has_targets = False

    def __init__(self, relation: str) -> None:
        self.outputs = ("prediction_logits", relation)
        self.row_outputs = (relation,)
        self.storage = {"prediction_logits": PER_LABEL, relation: PER_ROW}

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor | None:
        return None if output in self.row_outputs else positions


class ReplacedTokens(PredictionKind):
    """Prediction whether each token was replaced (ELECTRA): `logits` `(batch, tokens)`. The logit `z` of a token
    represents the two classes `(0, z)`."""

    name = "replaced tokens"
    has_values = False
    has_targets = False
    storage = {"logits": PER_TOKEN}

    def class_scores(self, output: str, logits: Tensor, inputs: Mapping[str, Any] | None = None) -> Tensor:
        return torch.stack([torch.zeros_like(logits), logits], -1)

    def from_class_scores(self, output: str, classes: Tensor) -> Tensor:
        return classes[..., 1] - classes[..., 0]


ANSWER_SPANS = AnswerSpans()
SENTENCE_PAIRS = PretrainingHeads("seq_relationship_logits")
SENTENCE_ORDER = PretrainingHeads("sop_logits")
REPLACED_TOKENS = ReplacedTokens()

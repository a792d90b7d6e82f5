"""Kinds of predictions that soft losses, ensembles and teacher caches distinguish."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PredictionKind:
    """
    Predictions that are scores of classes, for each row or for each of its positions. Base class of other kinds.

    Attributes:
        name (`str`): Name in messages and fingerprints.
        outputs (`tuple[str, ...]`): Names of the model outputs that a soft loss compares and a teacher cache stores.
        is_listed (`bool`): Whether each output is a list `(batch, items)` whose length differs between rows, padded
            with the smallest finite number.
        has_numbers (`bool`): Whether the last classes are the numbers of the row's problem.
        has_targets (`bool`): Whether the labels are the correct classes, one for each prediction.
    """

    name = "classes"
    outputs: tuple[str, ...] = ("logits",)
    is_listed = False
    has_numbers = False
    has_targets = True

    def classes(self, output: str, logits: Tensor) -> Tensor:
        """Return scores `(..., classes)` whose softmax is the distribution that an output represents."""
        return logits

    def logits(self, output: str, classes: Tensor) -> Tensor:
        """Invert [`~PredictionKind.classes`], up to shifts that a softmax ignores."""
        return classes

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor | None:
        """Return the mask of valid distributions; `positions` is the mask of labels, or `None` for all."""
        return positions

    def without_missing(self, output: str, logits: Tensor, number_positions: Tensor) -> Tensor:
        """Return the scores, with the smallest finite number for missing numbers (position -1)."""
        return logits


class ExpressionPositions(PredictionKind):
    """Symbols at the positions of an expression: logits `(batch, positions, symbols + numbers)`."""

    name = "positions of an expression"
    has_numbers = True

    def without_missing(self, output: str, logits: Tensor, number_positions: Tensor) -> Tensor:
        symbols = logits.shape[-1] - number_positions.shape[1]
        missing = nn.functional.pad(number_positions < 0, (symbols, 0))
        return logits.masked_fill(missing.unsqueeze(1), torch.finfo(logits.dtype).min)


class JudgedCandidates(PredictionKind):
    """
    Predictions that accept or reject each candidate by `logits` `(batch, candidates)`, and choose the answer from a
    pool by `answer_logits` `(batch, pool)`. Student and teacher must score the same candidates in the same order. The
    logit `z` of a candidate represents the two classes `(0, z)`, so that its Kullback-Leibler divergence is binary.
    """

    name = "judged candidates"
    outputs = ("logits", "answer_logits")
    is_listed = True
    has_targets = False

    def classes(self, output: str, logits: Tensor) -> Tensor:
        return torch.stack([torch.zeros_like(logits), logits], -1) if output == "logits" else logits

    def logits(self, output: str, classes: Tensor) -> Tensor:
        if output != "logits":
            return classes
        return (classes[..., 1] - classes[..., 0]).clamp(min=torch.finfo(classes.dtype).min)

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor:
        exists = logits > torch.finfo(logits.dtype).min
        return exists if output == "logits" else exists.any(-1)


CLASSES = PredictionKind()
EXPRESSION_POSITIONS = ExpressionPositions()
CANDIDATES = JudgedCandidates()

"""Kinds of predictions, as soft losses, ensembles and teacher caches tell them apart."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class PredictionKind:
    """
    Predictions that are scores of classes: of a row, or of each of its positions. A derived class says what differs.

    Attributes:
        name (`str`): Its name in messages and fingerprints.
        outputs (`tuple[str, ...]`): Outputs of a model that a soft loss compares and a teacher cache keeps, by name.
        is_listed (`bool`): Whether each of them is a list `(batch, items)` whose length is the row's own, padded with
            the smallest finite number.
        has_numbers (`bool`): Whether the last classes are the numbers of the row's problem.
        has_targets (`bool`): Whether the labels are the right classes, one for each prediction.
    """

    name = "classes"
    outputs: tuple[str, ...] = ("logits",)
    is_listed = False
    has_numbers = False
    has_targets = True

    def classes(self, output: str, logits: Tensor) -> Tensor:
        """Return scores `(..., classes)` whose softmax is the distribution that an output stands for."""
        return logits

    def logits(self, output: str, classes: Tensor) -> Tensor:
        """Return the inverse of [`~PredictionKind.classes`], up to what a softmax does not see."""
        return classes

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor | None:
        """Return where distributions count; `positions` are those of the labels, `None` for all."""
        return positions

    def without_missing(self, output: str, logits: Tensor, number_positions: Tensor) -> Tensor:
        """Return the scores with numbers forbidden whose position is -1."""
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
    Candidates that are accepted or not, each by a logit of its own in `logits` `(batch, candidates)`, and one of a
    pool that is the answer, in `answer_logits` `(batch, pool)`. Student and teacher judge the same list, in the same
    order. A candidate's logit `z` stands for the two classes `(0, z)`, so that a Kullback-Leibler divergence is the
    binary one.
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

"""Kinds of predictions, which soft losses compare and teacher caches store."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn


# Storage unit of an output in a teacher cache: a value for each token, or a vector for each labelled position or row.
PER_TOKEN = "token"
PER_LABEL = "label"
PER_ROW = "row"


class PredictionKind:
    """Prediction of a class for each row or for each of its positions, by `logits` `(batch, classes)` or `(batch,
    positions, classes)`. Base class of other kinds."""

    name = "classes"  # in messages and fingerprints
    outputs: tuple[str, ...] = ("logits",)  # names of the model's outputs
    is_ragged = False  # rows of the outputs differ in length, and are padded with the smallest finite number
    has_numbers = False  # the last classes are the numbers of the row's problem
    has_values = True  # each logit is a value that can be compared; padded and missing classes have none
    has_targets = True  # the labels are the correct classes, one for each prediction
    is_vocabulary = False  # the classes are tokens: models may have spare ones, and caches store the most likely ones
    part_weight = 1.0  # weight of the loss on each output
    row_outputs: tuple[str, ...] = ()  # outputs with a distribution for each row, if others have one for each position
    # Storage units of outputs other than `logits` of rows or positions: PER_TOKEN, PER_LABEL or PER_ROW.
    storage: Mapping[str, str] = {}

    def class_scores(self, output: str, logits: Tensor, inputs: Mapping[str, Any] | None = None) -> Tensor:
        """Return scores `(..., classes)` whose softmax is the distribution that the logits of an output represent.
        Classes that do not exist in a row of the batch `inputs` have the smallest finite number."""
        return logits

    def from_class_scores(self, output: str, classes: Tensor) -> Tensor:
        """Invert [`~PredictionKind.class_scores`], up to shifts that a softmax ignores."""
        return classes

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor | None:
        """Return the mask of valid distributions; `positions` is the mask of labels, or `None` for all."""
        return positions

    def mask_missing_numbers(self, output: str, logits: Tensor, number_positions: Tensor) -> Tensor:
        """Return the scores, with the smallest finite number for missing numbers (position -1)."""
        return logits


class PixelClasses(PredictionKind):
    """Class of each pixel of an image: logits `(batch, classes, height, width)`. There is no mask of valid pixels, as
    labels are larger than the logits."""

    name = "classes of pixels"
    has_targets = False

    def class_scores(self, output: str, logits: Tensor, inputs: Mapping[str, Any] | None = None) -> Tensor:
        return logits.movedim(1, -1)

    def from_class_scores(self, output: str, classes: Tensor) -> Tensor:
        return classes.movedim(-1, 1)

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor | None:
        return None


class NextTokens(PredictionKind):
    """Prediction of the next token at each position: `logits` `(batch, positions, tokens)`."""

    name = "next tokens"
    is_vocabulary = True


class ExpressionPositions(PredictionKind):
    """Symbols at the positions of an expression: logits `(batch, positions, symbols + numbers)`."""

    name = "positions of an expression"
    has_numbers = True
    has_values = False

    def mask_missing_numbers(self, output: str, logits: Tensor, number_positions: Tensor) -> Tensor:
        symbols = logits.shape[-1] - number_positions.shape[1]
        missing = nn.functional.pad(number_positions < 0, (symbols, 0))
        return logits.masked_fill(missing.unsqueeze(1), torch.finfo(logits.dtype).min)


class JudgedCandidates(PredictionKind):
    """Predictions that accept or reject each candidate by `logits` `(batch, candidates)`, and choose the answer from a
    pool by `answer_logits` `(batch, pool)`. Student and teacher must score the same candidates in the same order. The
    logit `z` of a candidate represents the two classes `(0, z)`, so that its Kullback-Leibler divergence is binary."""

    name = "judged candidates"
    outputs = ("logits", "answer_logits")
    is_ragged = True
    has_values = False
    has_targets = False

    def class_scores(self, output: str, logits: Tensor, inputs: Mapping[str, Any] | None = None) -> Tensor:
        if output != "logits":
            return logits
        return torch.stack([torch.zeros_like(logits), logits], -1)

    def from_class_scores(self, output: str, classes: Tensor) -> Tensor:
        if output != "logits":
            return classes
        return (classes[..., 1] - classes[..., 0]).clamp(min=torch.finfo(classes.dtype).min)

    def mask(self, output: str, logits: Tensor, positions: Tensor | None) -> Tensor:
        exists = logits > torch.finfo(logits.dtype).min
        return exists if output == "logits" else exists.any(-1)


CLASSES = PredictionKind()
PIXELS = PixelClasses()
NEXT_TOKENS = NextTokens()
EXPRESSION_POSITIONS = ExpressionPositions()
CANDIDATES = JudgedCandidates()


def symbol_groups(number_groups: Tensor, num_symbols: int) -> Tensor:
    """Return the group of each symbol `(B, num_symbols + N)` from `number_groups` `(B, N)`: its own id, for numbers
    of the text that of the first number with the same value, and -1 for missing numbers."""
    symbols = torch.arange(num_symbols, device=number_groups.device).expand(len(number_groups), -1)
    return torch.cat([symbols, number_groups.where(number_groups < 0, number_groups + num_symbols)], 1)

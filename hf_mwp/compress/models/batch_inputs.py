"""Sizes, masks and labels of batches."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor
from torch.nn.functional import pad


def num_rows(inputs: Mapping[str, Any]) -> int:
    """Return the number of rows in a batch."""
    return next(len(values) for values in inputs.values() if isinstance(values, Tensor))


def num_choices(inputs: Mapping[str, Any]) -> int | None:
    """Return the number of texts in each row of a batch, or `None` if rows are single texts."""
    input_ids = inputs.get("input_ids")
    if input_ids is None or input_ids.dim() != 3:
        return None
    return input_ids.shape[1]


def find_token_mask(inputs: Mapping[str, Any]) -> Tensor | None:
    """Return the mask `(batch, length)` of the tokens of a batch that are not padding, or `None` if all are tokens.
    For several texts in a row (multiple choice), it is `(batch * choices, length)`, as the hidden states. Packed
    documents have no attention mask, but `position_ids` that restart in each document; a document of one token counts
    as padding, since it predicts nothing."""
    mask = _of_texts("attention_mask", inputs)
    if mask is not None:
        return mask if mask.dim() == 2 else None
    position_ids = _of_texts("position_ids", inputs)
    if position_ids is None:
        return None
    # A document of several tokens has a position above 0, here or at the next token.
    is_later = position_ids > 0
    return is_later | pad(is_later[:, 1:], (0, 1))


def _of_texts(name: str, inputs: Mapping[str, Any]) -> Tensor | None:
    """Return an input with one row for each text, or `None` if it is missing."""
    values = inputs.get(name)
    if values is None or values.dim() != 3 or num_choices(inputs) is None:
        return values
    return values.flatten(0, 1)


def shift_labels(labels: Tensor, shift: int) -> Tensor:
    """Return labels `(batch, length)` moved to the left by `shift` positions, with -100 at the end."""
    if shift == 0:
        return labels
    return pad(labels[:, shift:], (0, shift), value=-100)

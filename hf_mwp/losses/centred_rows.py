"""Hidden states as matrices of centred rows, and norms of their products."""

from __future__ import annotations

import torch
from torch import Tensor


MIN_ROWS = 3
"""With two rows all centred states are multiples of one direction, and any two models look alike."""


def count_rows(mask: Tensor) -> Tensor:
    """
    Return the number of valid tokens.

    Raises:
        ValueError: one or two. On an accelerator the number is checked by an assertion on the device, so that nothing
            waits for it.
    """
    number = mask.sum()
    message = (
        f"Hidden states are compared over at least {MIN_ROWS} valid tokens, and this batch has one or two. Use larger "
        "batches, and leave out a short last one (`dataloader_drop_last=True`)."
    )
    if number.device.type == "cpu":
        if 0 < number < MIN_ROWS:
            raise ValueError(message)
    elif number.device.type != "meta":
        torch._assert_async((number == 0) | (number >= MIN_ROWS), message)
    return number


def centred_rows(ours: Tensor, theirs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """
    Return two states `(batch, tokens, width)`, zero at padding, as rows that are centred over the valid tokens, and
    the number of these. Rows of padding stay zero. The states are changed in place.
    """
    number, valid = count_rows(mask), mask.flatten().unsqueeze(-1)
    rows = [states.flatten(0, 1) for states in (ours, theirs)]
    means = [each.sum(0, keepdim=True) / number.clamp(min=1) for each in rows]
    # In place: copies of the states are most of what such a loss needs.
    return *(
        each.addcmul_(valid.to(each.dtype), mean, value=-1) for each, mean in zip(rows, means, strict=True)
    ), number


def squared_product_norm(first: Tensor, second: Tensor) -> Tensor:
    r"""
    Return `||XᵀY||_F²` of two matrices of as many rows, `(rows, width)`: from the product of the features, or from the
    two products of the rows where these are smaller.
    """
    if first.shape[0] < min(first.shape[1], second.shape[1]):
        return ((first @ first.T) * (second @ second.T)).sum()
    return (first.T @ second).square().sum()


def safe_sqrt(value: Tensor) -> Tensor:
    """Return the square root, with a zero gradient at zero."""
    return value.clamp(min=torch.finfo(value.dtype).tiny).sqrt()


def unit_norm(rows: Tensor) -> Tensor:
    """Return a matrix divided by its Frobenius norm; zero stays zero."""
    return rows / (safe_sqrt(rows.square().sum()) + torch.finfo(rows.dtype).tiny)

"""Functions on matrices of hidden states, one token per row, with the mean over tokens subtracted."""

from __future__ import annotations

import torch
from torch import Tensor


MIN_ROWS = 3
"""Minimum number of valid tokens. With two, all centred states have the same direction, so any two models look
alike."""


def count_rows(mask: Tensor, least: int = MIN_ROWS) -> Tensor:
    """
    Return the number of valid tokens.

    Raises:
        ValueError: if some tokens, but fewer than `least`, are valid. On an accelerator an assertion on the device
            checks this, without waiting.
    """
    number = mask.sum()
    message = (
        f"Comparing hidden states needs at least {least} valid tokens, but this batch has fewer. Use larger batches "
        "and drop a short last batch (`dataloader_drop_last=True`)."
    )
    if number.device.type == "cpu":
        if 0 < number < least:
            raise ValueError(message)
    elif number.device.type != "meta":
        torch._assert_async((number == 0) | (number >= least), message)
    return number


def centred_rows(ours: Tensor, theirs: Tensor, mask: Tensor, least: int = MIN_ROWS) -> tuple[Tensor, Tensor, Tensor]:
    """
    Centre the states `(batch, tokens, width)` of student and teacher over the valid tokens, in place. Return both as
    rows, and the number of valid tokens. Padding must be zero and stays zero.
    """
    number, valid = count_rows(mask, least), mask.flatten().unsqueeze(-1)
    rows = [states.flatten(0, 1) for states in (ours, theirs)]
    means = [each.sum(0, keepdim=True) / number.clamp(min=1) for each in rows]
    # In place, since copies of the states would take most of the memory.
    return *(
        each.addcmul_(valid.to(each.dtype), mean, value=-1) for each, mean in zip(rows, means, strict=True)
    ), number


def squared_product_norm(first: Tensor, second: Tensor) -> Tensor:
    r"""
    Return `||XᵀY||_F²` of two matrices `(rows, width)` with the same number of rows. It is computed from the products
    of features, or from the products of rows if there are fewer rows than features.
    """
    if first.shape[0] < min(first.shape[1], second.shape[1]):
        return ((first @ first.T) * (second @ second.T)).sum()
    return (first.T @ second).square().sum()


def safe_sqrt(value: Tensor) -> Tensor:
    """Return the square root, with a zero gradient at zero."""
    return value.clamp(min=torch.finfo(value.dtype).tiny).sqrt()


def unit_norm(rows: Tensor) -> Tensor:
    """Return a matrix divided by its Frobenius norm. A zero matrix stays zero."""
    return rows / (safe_sqrt(rows.square().sum()) + torch.finfo(rows.dtype).tiny)

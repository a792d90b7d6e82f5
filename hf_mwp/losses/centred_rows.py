"""Hidden states as matrices of centred rows, and norms of their products."""

from __future__ import annotations

import torch

from .checks import check_layers, valid_tokens


MIN_ROWS = 3
"""With two rows all centred states are multiples of one direction, and any two models look alike."""


def centred_rows(
    student: torch.Tensor, teacher: torch.Tensor, mask: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """
    Return the valid tokens of two states `(batch, tokens, width)` as rows, centred over the valid ones, in at least
    fp32; rows of padding are zero. The third value is the number of valid rows. The teacher's get no gradient.

    Raises:
        ValueError: states for different tokens, or one or two valid tokens. On an accelerator the number is checked by
            an assertion on the device, so that nothing waits for it.
    """
    check_layers([student], [teacher])
    mask = valid_tokens(mask, student)
    number = mask.sum()
    _check_number(number)
    mask = mask.flatten().unsqueeze(-1)
    return _centred(student, mask, number), _centred(teacher.detach(), mask, number), number


def _centred(states: torch.Tensor, mask: torch.Tensor, number: torch.Tensor) -> torch.Tensor:
    dtype = torch.promote_types(states.dtype, torch.float32)
    # `where` and not a product: whatever stands at padded places, NaN included, must not reach the loss.
    rows = torch.where(mask, states.flatten(0, 1).to(dtype), 0.0)
    return torch.where(mask, rows - rows.sum(0) / number.clamp(min=1), 0.0)


def _check_number(number: torch.Tensor) -> None:
    message = f"Hidden states are compared over at least {MIN_ROWS} valid tokens; this batch has one or two."
    if number.device.type == "cpu":
        if 0 < number < MIN_ROWS:
            raise ValueError(message)
    elif number.device.type != "meta":
        torch._assert_async((number == 0) | (number >= MIN_ROWS), message)


def squared_product_norm(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    r"""
    Return `||XᵀY||_F²` of two matrices of as many rows, `(rows, width)`: from the product of the features, or from the
    two products of the rows where these are smaller.
    """
    if first.shape[0] < min(first.shape[1], second.shape[1]):
        return ((first @ first.T) * (second @ second.T)).sum()
    return (first.T @ second).square().sum()


def safe_sqrt(value: torch.Tensor) -> torch.Tensor:
    """Return the square root, with a zero gradient at zero."""
    return value.clamp(min=torch.finfo(value.dtype).tiny).sqrt()


def unit_norm(rows: torch.Tensor) -> torch.Tensor:
    """Return a matrix divided by its Frobenius norm; zero stays zero."""
    return rows / (safe_sqrt(rows.square().sum()) + torch.finfo(rows.dtype).tiny)

"""Sums over positions, computed in chunks to save memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


# Logits in one chunk. Intermediate tensors, of which a divergence needs about eight, are not larger.
CHUNK_SIZE = 2**22


def sum_over_positions(function: Callable[..., Tensor], logits: Tensor, others: Mapping[str, Tensor]) -> Tensor:
    """
    Return `function(logits, **others)`, a sum over positions, and compute it in chunks of positions if the logits are
    large. Then the only tensor of the size of the logits that is created is their gradient.

    Args:
        function (`Callable`): Returns the sum over all positions of its arguments as a scalar.
        logits (`torch.Tensor`): `(..., classes)`. The only argument that receives a gradient.
        others (`Mapping[str, torch.Tensor]`): Tensors with the same positions, for example `(...)` or `(..., k)`.
    """
    num_positions = logits[..., 0].numel()
    positions_per_chunk = max(1, CHUNK_SIZE // logits.shape[-1])
    if num_positions <= positions_per_chunk:
        return function(logits, **others)
    last = logits.dim() - 2
    tensors = [tensor.flatten(0, last) for tensor in others.values()]
    return _ChunkedSum.apply(function, list(others), positions_per_chunk, logits.flatten(0, last), *tensors)


class _ChunkedSum(torch.autograd.Function):
    """Sum of a function over chunks of positions. The forward pass also computes the gradient, chunk by chunk."""

    @staticmethod
    def forward(
        ctx: Any, function: Callable, names: Sequence[str], positions_per_chunk: int, logits: Tensor, *others: Tensor
    ) -> Tensor:
        needs_gradient = logits.requires_grad
        ctx.num_others = len(others)
        gradient = torch.empty_like(logits) if needs_gradient else None
        total: Any = 0.0
        for start in range(0, len(logits), positions_per_chunk):
            positions = slice(start, start + positions_per_chunk)
            chunk = logits[positions].detach().requires_grad_(needs_gradient)
            other_chunks = {name: tensor[positions] for name, tensor in zip(names, others, strict=True)}
            with torch.set_grad_enabled(needs_gradient):
                chunk_sum = function(chunk, **other_chunks)
            if needs_gradient:
                [gradient[positions]] = torch.autograd.grad(chunk_sum, [chunk])
            total = total + chunk_sum.detach()
        if needs_gradient:
            ctx.save_for_backward(gradient)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient_of_sum: Tensor) -> tuple[Tensor | None, ...]:
        [gradient] = ctx.saved_tensors
        # In place, to save memory. A second backward pass raises an error, because the saved tensor has changed.
        gradient.mul_(gradient_of_sum)
        return None, None, None, gradient, *[None] * ctx.num_others

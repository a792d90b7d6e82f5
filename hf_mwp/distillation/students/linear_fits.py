"""Linear algebra for [`project_student`]: projections, least squares and low-rank factors."""

from collections.abc import Sequence

import torch
from torch import Tensor


def residual_projection(states: Sequence[Tensor], width: int) -> Tensor:
    """
    Return the projection `(m, width)` of the hidden states `(tokens, m)` of several layers onto their main directions.
    It has rank `width - 1` and commutes with layer normalisation: as far as these directions contain the states,
    normalising before and after the projection gives the same result.

    Layer normalisation subtracts the mean over the features and divides by their standard deviation. The directions
    therefore have entries that sum to zero, are rotated so that each narrow feature mixes all of them, and keep the
    size of the features.
    """
    size = states[0].shape[1]
    moment = torch.zeros(size, size, dtype=torch.float64, device=states[0].device)
    for state in states:
        state = state - state.mean(1, keepdim=True)
        second = (state.T @ state).double()
        moment += second / second.trace().clamp(min=1e-12)
    directions = torch.linalg.eigh(moment).eigenvectors.flip(1)[:, : width - 1]
    directions = directions - directions.mean(0)
    generator = torch.Generator().manual_seed(0)
    random = torch.randn(width, width - 1, dtype=torch.float64, generator=generator)
    basis = torch.cat([torch.ones(width, 1, dtype=torch.float64), random], dim=1)
    # All columns but the first are orthogonal to it: their entries sum to zero.
    basis = torch.linalg.qr(basis).Q[:, 1:].to(directions.device)
    return ((width / size) ** 0.5 * directions @ basis.T).to(states[0].dtype)


def fit_linear(inputs: Tensor, outputs: Tensor, ridge: float) -> tuple[Tensor, Tensor]:
    """
    Return the weight `(b, a)` and bias `(b,)` of the linear map that best predicts `outputs` `(tokens, b)` from
    `inputs` `(tokens, a)`. `ridge` regularises the weight, relative to the mean variance of the inputs.
    """
    means = inputs.mean(0), outputs.mean(0)
    centred = inputs - means[0]
    square = (centred.T @ centred).double()
    square += ridge * square.diagonal().mean().clamp(min=1e-12) * torch.eye(len(square), device=square.device)
    weight = torch.linalg.solve(square, (centred.T @ (outputs - means[1])).double()).T.to(inputs.dtype)
    return weight, means[1] - weight @ means[0]


def factorise(matrix: Tensor, left: Tensor | None, right: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """
    Return factors `(A, B)` with `rank` rows for which `xᵀ Aᵀ B y` is closest to `xᵀ matrix y`, for `x` and `y` with
    the given second moments (`left=None`: all directions of `x` count the same). Rows beyond the rank of the
    matrix are small but not zero.
    """
    roots = [None if moment is None else _root(moment) for moment in (left, right)]
    weighted = matrix.double() @ roots[1][0]
    if roots[0] is not None:
        weighted = roots[0][0] @ weighted
    u, s, v = torch.linalg.svd(weighted, full_matrices=False)
    s, u, v = s[:rank].clamp(min=1e-4 * s[0]).sqrt(), u[:, :rank].T, v[:rank]
    a = s[:, None] * u if roots[0] is None else s[:, None] * u @ roots[0][1]
    b = s[:, None] * v @ roots[1][1]
    return a.to(matrix.dtype), b.to(matrix.dtype)


def _root(moment: Tensor) -> tuple[Tensor, Tensor]:
    """Return the square root of a symmetric positive matrix, and the inverse of this root."""
    values, vectors = torch.linalg.eigh(moment.double())
    values = values.clamp(min=values[-1].clamp(min=1e-12) * 1e-6).sqrt()
    return vectors * values @ vectors.T, vectors / values @ vectors.T

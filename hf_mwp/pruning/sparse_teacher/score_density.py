"""Density of scores, and the sparsity at its first peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ...usage_error import UsageError


POINTS = 512
# So far the curve goes beyond the scores, in bandwidths.
MARGIN = 3.0
# A peak is at least this share of the highest: a single unit apart from the others is none.
LEAST_PEAK = 0.1
_CHUNK = 4096


@dataclass(frozen=True, eq=False)
class ScoreDensity:
    """
    Density and cumulative density of scores, by a Gaussian kernel at 512 points from 3 bandwidths below the lowest
    score to 3 above the highest. The paper names neither kernel nor bandwidth; this is Silverman's rule of thumb,
    `0.9 · min(deviation, interquartile range / 1.34) · n^(-1/5)`.

    Args:
        points (`Tensor` of shape `(512,)`): Scores, ascending.
        density (`Tensor` of shape `(512,)`): Their density.
        cumulative (`Tensor` of shape `(512,)`): The share of the units that score less, from 0 to 1.
        bandwidth (`float`): Standard deviation of the kernel.

    References:
        Yang et al., "Sparse Teachers Can Be Dense with Knowledge" (EMNLP 2022), figures 4 to 8; Silverman, "Density
        Estimation for Statistics and Data Analysis" (1986), equation 3.31.
    """

    points: Tensor
    density: Tensor
    cumulative: Tensor
    bandwidth: float

    @classmethod
    def of(cls, scores: Tensor) -> ScoreDensity:
        """
        The density of scores of any shape, [`UnitScores.heads`] or [`UnitScores.neurons`]; NaN is left out.

        Raises:
            UsageError: fewer than two scores, or all are equal.
        """
        values = scores[scores.isfinite()].double().cpu()
        if len(values) < 2 or values.min() == values.max():
            raise UsageError("A density needs scores of at least two units that differ.")
        deviation = values.std()
        quarter, three_quarters = values.quantile(torch.tensor([0.25, 0.75], dtype=torch.float64))
        # Where half of the scores are equal, the range says nothing.
        spread = min(deviation, (three_quarters - quarter) / 1.34) or deviation
        bandwidth = 0.9 * spread.item() * len(values) ** -0.2
        margin = MARGIN * bandwidth
        points = torch.linspace(values.min() - margin, values.max() + margin, POINTS, dtype=torch.float64)
        density, cumulative = torch.zeros_like(points), torch.zeros_like(points)
        for chunk in values.split(_CHUNK):
            distances = (points[:, None] - chunk) / bandwidth
            density += (-distances.square() / 2).exp().sum(1)
            cumulative += torch.special.ndtr(distances).sum(1)
        density /= len(values) * bandwidth * (2 * torch.pi) ** 0.5
        return cls(points, density, cumulative / len(values), bandwidth)

    @cached_property
    def peak(self) -> int:
        """
        The first peak, as the number of a point: the lowest score whose density is above that of the point before and
        not below that of the next, and at least a tenth of the highest density.
        """
        middle = self.density[1:-1]
        is_peak = (middle > self.density[:-2]) & (middle >= self.density[2:])
        is_peak &= middle >= LEAST_PEAK * self.density.max()
        return int(is_peak.nonzero()[0]) + 1

    @property
    def sparsity(self) -> float:
        """
        The sparsity of STARK-AUTO (section 4.4, assumption 2): the cumulative density at the first peak. The paper
        shows it for heads and removes as large a share of the neurons.
        """
        return self.cumulative[self.peak].item()

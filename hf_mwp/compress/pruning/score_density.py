"""Density of scores, and the sparsity at its first peak."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.nn.functional import pad

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError


POINTS = 512
MARGIN = 3.0  # of the curve beyond the scores, in bandwidths
LEAST_PEAK = 0.1  # minimum height of a peak as a share of the highest, so that a single outlier is not a peak
CHUNK = 4096


@checked
@dataclass(frozen=True, eq=False)
class ScoreDensity:
    """
    Density and cumulative density of scores (share of scores below a point) at 512 ascending points from 3 bandwidths
    below the lowest score to 3 above the highest, at most half a bandwidth apart: scores far above all others may be
    left out. The paper (Yang et al., figures 4 to 8) specifies neither kernel nor bandwidth; these are a Gaussian and
    `0.9 · min(deviation, interquartile range / 1.34) · n^(-1/5)` (Silverman, "Density Estimation for Statistics and
    Data Analysis" (1986), equation 3.31).
    """

    points: Tensor
    density: Tensor
    cumulative: Tensor
    bandwidth: float

    @classmethod
    def of(cls, scores: Tensor) -> ScoreDensity:
        """Estimate the density of scores; NaN is ignored. Raises `UsageError` without two different scores."""
        values = scores[scores.isfinite()].double().cpu()
        if len(values) < 2 or values.min() == values.max():
            raise UsageError("A density needs different scores of at least two units.")
        deviation = values.std()
        quarter, three_quarters = values.quantile(torch.tensor([0.25, 0.75], dtype=torch.float64))
        # Ignore an interquartile range of 0 (half of the scores are equal).
        spread = min(deviation, (three_quarters - quarter) / 1.34) or deviation
        bandwidth = 0.9 * spread.item() * len(values) ** -0.2
        low = values.min() - MARGIN * bandwidth
        high = values.max() + MARGIN * bandwidth
        step = min((high - low) / (POINTS - 1), bandwidth / 2)
        points = low + step * torch.arange(POINTS, dtype=torch.float64)
        density = torch.zeros_like(points)
        cumulative = torch.zeros_like(points)
        for chunk in values.split(CHUNK):
            distances = (points[:, None] - chunk) / bandwidth
            density += (-distances.square() / 2).exp().sum(1)
            cumulative += torch.special.ndtr(distances).sum(1)
        density /= len(values) * bandwidth * (2 * torch.pi) ** 0.5
        return cls(points, density, cumulative / len(values), bandwidth)

    @cached_property
    def peak(self) -> int:
        """Index of the first point whose density is a local maximum, and at least a tenth of the highest."""
        before = pad(self.density, (1, 0))[:-1]
        after = pad(self.density, (0, 1))[1:]
        is_peak = (self.density > before) & (self.density >= after)
        is_peak &= self.density >= LEAST_PEAK * self.density.max()
        return int(is_peak.nonzero()[0])

    @property
    def sparsity(self) -> float:
        """Sparsity of STARK-AUTO (section 4.4, assumption 2): the cumulative density of heads at the first peak."""
        return self.cumulative[self.peak].item()

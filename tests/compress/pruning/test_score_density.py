import math

import pytest
import torch

from hf_mwp.compress.pruning import ScoreDensity
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import normal_quantiles


def test_density_of_two_scores_by_hand():
    # Deviation 2^-1/2, interquartile range 1/2: the bandwidth is 0.9 * 0.5 / 1.34 * 2^-1/5.
    density = ScoreDensity.of(torch.tensor([[0.0, math.nan], [math.nan, 1.0]]))
    bandwidth = 0.9 * 0.5 / 1.34 * 2**-0.2
    assert density.bandwidth == pytest.approx(bandwidth)
    assert len(density.points) == 512
    assert density.points[[0, -1]].tolist() == pytest.approx([-3 * bandwidth, 1 + 3 * bandwidth])
    distances = (density.points[100] - torch.tensor([0.0, 1.0])) / bandwidth
    kernels = torch.exp(-distances.square() / 2) / (bandwidth * math.sqrt(2 * math.pi))
    assert density.density[100].item() == pytest.approx(kernels.mean().item())
    assert density.cumulative[100].item() == pytest.approx(torch.special.ndtr(distances).mean().item())


def test_deviation_replaces_an_interquartile_range_of_zero():
    scores = torch.tensor([0.0, 0, 0, 0, 0, 0, 0, 1])
    assert ScoreDensity.of(scores).bandwidth == pytest.approx(0.9 * math.sqrt(1 / 8) * 8**-0.2)


def test_cumulative_is_the_integral_of_the_density():
    density = ScoreDensity.of(normal_quantiles(0.3, 0.1, 5000))
    step = density.points[1] - density.points[0]
    torch.testing.assert_close(density.density.cumsum(0) * step, density.cumulative, rtol=0, atol=3e-2)
    assert density.density.sum() * step == pytest.approx(1, abs=2e-3)


@pytest.mark.parametrize(
    ("peaks", "first_peak", "sparsity"),
    [
        ([normal_quantiles(0.3, 0.05, 144)], 0.3, 0.5),
        # The first of two peaks counts, whether or not it is the highest.
        ([normal_quantiles(0.8, 0.05, 90), normal_quantiles(0.2, 0.05, 30)], 0.2, 0.125),
        ([normal_quantiles(0.2, 0.05, 90), normal_quantiles(0.8, 0.05, 30)], 0.2, 0.375),
        # A unit apart from all others is no peak.
        ([torch.tensor([0.0]), normal_quantiles(0.8, 0.05, 99)], 0.8, 0.5),
        # A 512th of the range is five deviations of the other scores.
        ([normal_quantiles(0.002, 0.0004, 70), torch.tensor([0.9, 1.0])], 0.002, 35 / 72),
    ],
)
def test_first_peak_decides_the_sparsity(peaks, first_peak, sparsity):
    density = ScoreDensity.of(torch.cat(peaks))
    assert density.points[density.peak].item() == pytest.approx(first_peak, rel=0.05)
    assert density.sparsity == pytest.approx(sparsity, abs=0.05)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, math.nan]])
def test_fewer_than_two_different_scores_raise(values):
    with pytest.raises(UsageError, match="two units"):
        ScoreDensity.of(torch.tensor(values))

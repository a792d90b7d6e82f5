import math

import pytest
import torch

from hf_mwp.compress.pruning import ScoreDensity
from hf_mwp.utils.usage_error import UsageError


def normal(mean, deviation, count):
    """Quantiles of a normal distribution."""
    shares = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    return mean + deviation * torch.special.ndtri(shares)


def test_density_of_two_scores_by_hand():
    # Deviation 2^-1/2, interquartile range 1/2: the bandwidth is 0.9 * 0.5 / 1.34 * 2^-1/5.
    density = ScoreDensity.of(torch.tensor([[0.0, math.nan], [math.nan, 1.0]]))
    bandwidth = 0.9 * 0.5 / 1.34 * 2**-0.2
    assert density.bandwidth == pytest.approx(bandwidth)
    assert density.points[[0, -1]].tolist() == pytest.approx([-3 * bandwidth, 1 + 3 * bandwidth])
    at = 100
    expected = [math.exp(-(((density.points[at].item() - x) / bandwidth) ** 2) / 2) for x in (0, 1)]
    assert density.density[at].item() == pytest.approx(sum(expected) / 2 / bandwidth / math.sqrt(2 * math.pi))
    expected = [math.erfc((x - density.points[at].item()) / bandwidth / math.sqrt(2)) / 2 for x in (0, 1)]
    assert density.cumulative[at].item() == pytest.approx(sum(expected) / 2)
    # Half of the scores equal: no interquartile range, the deviation stands in for it.
    scores = torch.tensor([0.0, 0, 0, 0, 0, 0, 0, 1])
    assert ScoreDensity.of(scores).bandwidth == pytest.approx(0.9 * math.sqrt(1 / 8) * 8**-0.2)


def test_the_curves_belong_together():
    density = ScoreDensity.of(normal(0.3, 0.1, 5000))
    step = density.points[1] - density.points[0]
    torch.testing.assert_close(density.density.cumsum(0) * step, density.cumulative, rtol=0, atol=3e-2)
    assert density.density.sum() * step == pytest.approx(1, abs=2e-3)


def test_one_peak_is_found_where_half_score_less():
    density = ScoreDensity.of(normal(0.3, 0.05, 144))
    assert density.points[density.peak].item() == pytest.approx(0.3, abs=2e-3)
    assert density.sparsity == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize("order", [1, -1])
def test_the_first_of_two_peaks_counts_whether_or_not_it_is_the_highest(order):
    few = normal(0.2 if order > 0 else 0.8, 0.05, 30)
    many = normal(0.8 if order > 0 else 0.2, 0.05, 90)
    density = ScoreDensity.of(torch.cat([many, few]).view(12, 10))
    assert density.points[density.peak].item() == pytest.approx(0.2, abs=0.01)
    assert density.sparsity == pytest.approx(0.125 if order > 0 else 0.375, abs=0.02)


def test_a_unit_apart_from_all_others_is_no_peak():
    density = ScoreDensity.of(torch.cat([torch.tensor([0.0]), normal(0.8, 0.05, 99)]))
    assert density.points[density.peak].item() == pytest.approx(0.8, abs=0.01)


def test_units_far_above_all_others_do_not_hide_the_first_peak():
    # A 512th of the range is five deviations of the other scores.
    density = ScoreDensity.of(torch.cat([normal(0.002, 0.0004, 70), torch.tensor([0.9, 1.0])]))
    assert density.points[density.peak].item() == pytest.approx(0.002, abs=1e-4)
    assert density.sparsity == pytest.approx(35 / 72, abs=0.05)


@pytest.mark.parametrize("values", [[], [1.0], [2.0, 2.0, math.nan]])
def test_what_has_no_density(values):
    with pytest.raises(UsageError, match="two units"):
        ScoreDensity.of(torch.tensor(values))

import math

import pytest
import torch

from hf_mwp.compress.losses import RelationLoss


def test_by_hand():
    # The student's rows are (1/2, 1/2); of the teacher's the first is (e, 1) / (e + 1), the second (1/2, 1/2).
    ours = torch.zeros(1, 2, 1)
    theirs = torch.tensor([[[1.0], [0.0]]])
    p = math.e / (math.e + 1)
    expected = (p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))) / 2  # 0.0554720
    assert RelationLoss()(ours, theirs).item() == pytest.approx(expected, rel=1e-5)
    # A second head without relations halves the mean; with one head its zeros make the scores smaller.
    wide = torch.cat([theirs, torch.zeros(1, 2, 1)], 2)
    assert RelationLoss(2)(torch.zeros(1, 2, 2), wide).item() == pytest.approx(expected / 2, rel=1e-5)
    p = 1 / (1 + math.exp(-1 / math.sqrt(2)))
    expected = (p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))) / 2
    assert RelationLoss()(torch.zeros(1, 2, 4), wide).item() == pytest.approx(expected, rel=1e-5)


def test_rotated_vectors():
    torch.manual_seed(0)
    values = torch.randn(2, 5, 8)
    rotation = torch.linalg.qr(torch.randn(8, 8)).Q
    assert RelationLoss()(values @ rotation, values).item() == pytest.approx(0.0, abs=1e-5)
    assert RelationLoss(2)(values @ rotation, values).item() > 1e-3


def test_padding():
    torch.manual_seed(0)
    ours = torch.randn(2, 3, 4)
    theirs = torch.randn(2, 3, 8)
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    alone = [RelationLoss(2)(ours[:1, :2], theirs[:1, :2]), RelationLoss(2)(ours[1:], theirs[1:])]
    ours[0, 2] = theirs[0, 2] = math.nan
    ours.requires_grad_()
    loss = RelationLoss(2)(ours, theirs, mask)
    assert loss.item() == pytest.approx((2 * alone[0].item() + 3 * alone[1].item()) / 5, rel=1e-5)
    loss.backward()
    assert ours.grad[mask.bool()].isfinite().all() and not ours.grad[0, 2].any()


def test_errors():
    with pytest.raises(ValueError, match=r"\b4 .*\b3 relation heads"):
        RelationLoss(3)(torch.zeros(1, 2, 4), torch.zeros(1, 2, 6))
    with pytest.raises(ValueError, match="`heads`.* 0"):
        RelationLoss(0)

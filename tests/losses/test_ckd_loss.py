import math

import pytest
import torch

from hf_mwp.losses import CKDPairLoss, CKDTripleLoss


def test_pairs_by_hand():
    # The student's cosines of three items: 0, 1, 0; the teacher's: 1, 0, 0.
    ours = torch.tensor([[[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]])
    theirs = torch.tensor([[[5.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 4.0]]])
    assert CKDPairLoss()(ours, theirs).item() == pytest.approx(2 / 3)
    assert CKDPairLoss()(ours, theirs, torch.tensor([[1, 1, 0]])).item() == pytest.approx(1.0)
    assert CKDPairLoss()(7 * ours, ours).item() == pytest.approx(0.0, abs=1e-6)


def test_padding_and_limits():
    ours = torch.tensor([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 1.0], [math.nan, 1.0]]], requires_grad=True)
    theirs = torch.ones(2, 2, 2)
    mask = torch.tensor([[1, 1], [1, 0]])
    loss = CKDPairLoss()(ours, theirs, mask)
    assert loss.item() == pytest.approx(1.0) and CKDPairLoss.count(mask) == 1
    loss.backward()
    assert ours.grad.isfinite().all() and not ours.grad[1].any()
    assert CKDPairLoss()(ours, theirs, torch.tensor([[1, 0], [0, 0]])).item() == 0.0
    zeros = torch.zeros(1, 2, 2, requires_grad=True)
    CKDPairLoss()(zeros, torch.ones(1, 2, 2)).backward()
    assert zeros.grad.isfinite().all()


def test_triples_by_hand():
    # At the middle item: a right angle (0) and a straight line (-1).
    ours, theirs = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]]), torch.tensor([[[1.0], [0.0], [-1.0]]])
    assert CKDTripleLoss(window=1)(ours, theirs).item() == pytest.approx(1.0)
    # At the others: 45 degrees, and two points on the same side (1).
    expected = (1.0 + 2 * (math.sqrt(0.5) - 1) ** 2) / 3
    assert CKDTripleLoss()(ours, theirs).item() == pytest.approx(expected, rel=1e-5)
    assert CKDTripleLoss()(3 * ours + 1, ours).item() == pytest.approx(0.0, abs=1e-6)


def test_limits_of_triples():
    one = torch.zeros(1, 1, 3, requires_grad=True)
    assert CKDTripleLoss()(one, torch.ones(1, 1, 3)).item() == 0.0
    same = torch.ones(1, 3, 3, requires_grad=True)
    CKDTripleLoss()(same, torch.randn(1, 3, 3)).backward()
    assert same.grad.isfinite().all()
    with pytest.raises(ValueError, match="`window`.* 0"):
        CKDTripleLoss(0)

import math

import pytest
import torch

from hf_mwp.compress.losses import CKDPairLoss


def test_by_hand():
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

import math

import pytest
import torch

from hf_mwp.compress.losses import CKDTripleLoss


def test_by_hand():
    # At the middle item: a right angle (0) and a straight line (-1).
    ours = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]])
    theirs = torch.tensor([[[1.0], [0.0], [-1.0]]])
    assert CKDTripleLoss(window=1)(ours, theirs).item() == pytest.approx(1.0)
    # At the others: 45 degrees, and two points on the same side (1).
    expected = (1.0 + 2 * (math.sqrt(0.5) - 1) ** 2) / 3
    assert CKDTripleLoss()(ours, theirs).item() == pytest.approx(expected, rel=1e-5)
    assert CKDTripleLoss()(3 * ours + 1, ours).item() == pytest.approx(0.0, abs=1e-6)


def test_limits():
    one = torch.zeros(1, 1, 3, requires_grad=True)
    assert CKDTripleLoss()(one, torch.ones(1, 1, 3)).item() == 0.0
    same = torch.ones(1, 3, 3, requires_grad=True)
    CKDTripleLoss()(same, torch.randn(1, 3, 3)).backward()
    assert same.grad.isfinite().all()
    with pytest.raises(ValueError, match="`window`.* 0"):
        CKDTripleLoss(0)

import itertools
import math

import pytest
import torch

from hf_mwp.losses import CKDTripleLoss


def test_by_hand():
    # At the middle item: a right angle (0) and a straight line (-1).
    ours, theirs = torch.tensor([[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]]), torch.tensor([[[1.0], [0.0], [-1.0]]])
    assert CKDTripleLoss(window=1)(ours, theirs).item() == pytest.approx(1.0)
    # At the others: 45 degrees, and two points on the same side (1).
    expected = (1.0 + 2 * (math.sqrt(0.5) - 1) ** 2) / 3
    assert CKDTripleLoss()(ours, theirs).item() == pytest.approx(expected, rel=1e-5)
    assert CKDTripleLoss()(3 * ours + 1, ours).item() == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("window", [1, 2, 3, None])
def test_against_a_loop(window):
    torch.manual_seed(0)
    ours, theirs = torch.randn(2, 6, 4), torch.randn(2, 6, 3)
    mask = torch.tensor([[1, 1, 1, 1, 0, 0], [1, 1, 0, 1, 1, 1]])
    found = []
    for row, at in itertools.product(range(2), range(6)):
        near = [i for i in range(6) if i != at and mask[row, i] and abs(i - at) <= (window or 6)]
        for i, k in itertools.combinations(near, 2) if mask[row, at] else []:
            angles = [
                torch.cosine_similarity(x[row, i] - x[row, at], x[row, k] - x[row, at], dim=0) for x in (ours, theirs)
            ]
            found.append((angles[0] - angles[1]).item() ** 2)
    loss = CKDTripleLoss(window)
    assert loss.count(mask) == len(found)
    ours = ours.masked_fill(mask.unsqueeze(-1) == 0, math.nan).requires_grad_()
    value = loss(ours, theirs, mask)
    assert value.item() == pytest.approx(sum(found) / len(found), rel=1e-4)
    value.backward()
    assert ours.grad.isfinite().all() and not ours.grad[mask == 0].any()


def test_limits():
    one = torch.zeros(1, 1, 3, requires_grad=True)
    assert CKDTripleLoss()(one, torch.ones(1, 1, 3)).item() == 0.0
    same = torch.ones(1, 3, 3, requires_grad=True)
    CKDTripleLoss()(same, torch.randn(1, 3, 3)).backward()
    assert same.grad.isfinite().all()
    with pytest.raises(ValueError, match="`window`.* 0"):
        CKDTripleLoss(0)
    assert "park2021distilling" in CKDTripleLoss().citation

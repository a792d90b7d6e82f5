import math

import pytest
import torch

from hf_mwp.compress.losses import PKDLoss


def states(*rows):
    """One text of two tokens, of which the first has the given state."""
    return torch.tensor([[list(rows[0]), [math.nan, math.nan]]])


def test_by_hand():
    # (3/5, 4/5) and (1, 0): 4/25 + 16/25; the second layer points the other way: 4.
    ours = [states((3.0, 4.0)), states((0.0, 2.0))]
    theirs = [states((2.0, 0.0)), states((0.0, -1.0))]
    assert PKDLoss()(ours, theirs).item() == pytest.approx((0.8 + 4.0) / 2)
    assert PKDLoss()(ours[:1], theirs[:1]).item() == pytest.approx(0.8)


def test_the_first_valid_token_counts_and_empty_texts_do_not():
    ours = torch.tensor([[[9.0, 9.0], [3.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]], requires_grad=True)
    theirs = torch.tensor([[[0.0, 7.0], [2.0, 0.0]], [[5.0, 1.0], [1.0, 1.0]]])
    mask = torch.tensor([[0, 1], [0, 0]])
    loss = PKDLoss()([ours], [theirs], mask)
    assert loss.item() == pytest.approx(0.8) and PKDLoss.count(mask) == 1
    loss.backward()
    assert ours.grad[0, 1].any() and not ours.grad[0, 0].any() and not ours.grad[1].any()


def test_errors():
    with pytest.raises(ValueError, match=r"\b1 layers.*\b2\b"):
        PKDLoss()([torch.zeros(1, 2, 3)], [torch.zeros(1, 2, 3)] * 2)
    with pytest.raises(ValueError, match="projection"):
        PKDLoss()([torch.zeros(1, 2, 3)], [torch.zeros(1, 2, 4)])

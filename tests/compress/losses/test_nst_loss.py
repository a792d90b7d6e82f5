import pytest
import torch

from hf_mwp.compress.losses import NSTLoss


def test_value_worked_out_by_hand():
    student = torch.tensor([[[1.0, 1.0], [0.0, 2.0]]])
    teacher = torch.tensor([[[2.0], [1.0]]])
    # [[2, 2], [2, 4]] / 2 against [[4, 2], [2, 1]] / 1
    expected = ((1 - 4) ** 2 + (1 - 2) ** 2 + (1 - 2) ** 2 + (2 - 1) ** 2) / 4
    assert NSTLoss()(student, teacher).item() == pytest.approx(expected)
    assert NSTLoss()(student, teacher, torch.tensor([[1, 0]])).item() == pytest.approx(9.0)
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1]])
    assert NSTLoss.count(mask).item() == 25 + 4 + 9


def test_two_layers():
    first = torch.tensor([[[1.0], [2.0]]])
    second = torch.tensor([[[3.0], [1.0]]])
    zeros = torch.zeros(1, 2, 1)
    # [1, 2]ᵀ [3, 1] = [[3, 1], [6, 2]]
    assert NSTLoss()((first, second), (zeros, zeros)).item() == pytest.approx((9 + 1 + 36 + 4) / 4)
    assert NSTLoss()((first, first), (zeros, zeros)).item() == NSTLoss()(first, zeros).item()


def test_rotations_of_the_features_change_nothing():
    states = torch.randn(2, 4, 6)
    rotation = torch.linalg.qr(torch.randn(6, 6)).Q
    assert NSTLoss()(states @ rotation, states).item() == pytest.approx(0.0, abs=1e-10)


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf")])
def test_padding_may_hold_anything(rubbish):
    student = torch.tensor([[[1.0], [rubbish]]], requires_grad=True)
    teacher = torch.tensor([[[3.0], [rubbish]]], requires_grad=True)
    loss = NSTLoss()(student, teacher, torch.tensor([[True, False]]))
    loss.backward()
    # (1² - 3²)², and 2 (1 - 9) 2
    assert loss.item() == pytest.approx(64.0)
    assert student.grad.flatten().tolist() == pytest.approx([-32.0, 0.0]) and teacher.grad is None


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="2 layers.* 1"):
        NSTLoss()((torch.zeros(1, 2, 3),), torch.zeros(1, 2, 3))

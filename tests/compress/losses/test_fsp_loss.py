import pytest
import torch

from hf_mwp.compress.losses import FSPLoss


def test_value_worked_out_by_hand():
    first = torch.tensor([[[1.0, 0.0], [2.0, 1.0]]])
    second = torch.tensor([[[1.0, 1.0], [0.0, 3.0]]])
    # H1ᵀ H2 / 2 = [[1, 7], [0, 3]] / 2; the teacher's, of zeros, is zero.
    zeros = torch.zeros(1, 2, 2)
    expected = (1 + 49 + 0 + 9) / 4 / 4
    assert FSPLoss()((first, second), (zeros, zeros)).item() == pytest.approx(expected)
    # The first token alone: [[1, 1], [0, 0]] / 1.
    mask = torch.tensor([[1, 0]])
    assert FSPLoss()((first, second), (zeros, zeros), mask).item() == pytest.approx(2 / 4)
    assert FSPLoss.count(torch.tensor([[1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]])).item() == 3


def test_the_two_layers_may_differ_in_width():
    first = torch.tensor([[[1.0], [2.0]]])
    second = torch.tensor([[[1.0, 0.0], [1.0, 1.0]]])
    zeros = torch.zeros_like(first), torch.zeros_like(second)
    # [1, 2] · [[1, 0], [1, 1]] / 2 = [3, 2] / 2
    assert FSPLoss()((first, second), zeros).item() == pytest.approx((9 + 4) / 4 / 2)


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf")])
def test_padding_may_hold_anything(rubbish):
    student = torch.tensor([[[1.0], [rubbish]]], requires_grad=True)
    teacher = torch.tensor([[[3.0], [0.0]]])
    loss = FSPLoss()((student, student), (teacher, teacher), torch.tensor([[1, 0]]))
    loss.backward()
    # (1² - 3²)², and 2 (1 - 9) 2
    assert loss.item() == pytest.approx(64.0)
    assert student.grad.flatten().tolist() == pytest.approx([-32.0, 0.0])


def test_wrong_use_is_named():
    states = [torch.zeros(1, 2, 3)] * 2
    with pytest.raises(ValueError, match="projection"):
        FSPLoss()(states, [torch.zeros(1, 2, 4)] * 2)
    with pytest.raises(ValueError, match="2 layers.* 1"):
        FSPLoss()(states[:1], states)
    with pytest.raises(ValueError, match=r"\(1, 2\).*\(1, 4\)"):
        FSPLoss()([torch.zeros(1, 2, 3), torch.zeros(1, 4, 3)], states)

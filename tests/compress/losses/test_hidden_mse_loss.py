import pytest
import torch

from hf_mwp.compress.losses import HiddenMSELoss


def test_value_worked_out_by_hand():
    student = torch.tensor([[[1.0, 2.0], [0.0, 0.0]]])
    teacher = torch.tensor([[[0.0, 4.0], [2.0, 0.0]]])
    # (1 + 4 + 4 + 0) / 4
    assert HiddenMSELoss()(student, teacher).item() == pytest.approx(2.25)
    # the first token alone: (1 + 4) / 2
    assert HiddenMSELoss()(student, teacher, torch.tensor([[1, 0]])).item() == pytest.approx(2.5)


def test_each_token_counts_the_same_whatever_its_text():
    student = torch.zeros(2, 3, 1)
    teacher = torch.ones(2, 3, 1)
    teacher[1, 0] = 5.0
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    assert HiddenMSELoss()(student, teacher, mask).item() == pytest.approx((1 + 1 + 1 + 25) / 4)


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), torch.finfo(torch.float32).max])
def test_padding_may_hold_anything(rubbish):
    student = torch.tensor([[[1.0], [rubbish]]], requires_grad=True)
    teacher = torch.tensor([[[3.0], [0.0]]])
    loss = HiddenMSELoss()(student, teacher, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(4.0)
    assert student.grad.flatten().tolist() == pytest.approx([-4.0, 0.0])


def test_gradient_worked_out_by_hand():
    student = torch.randn(1, 2, 3, requires_grad=True)
    teacher = torch.randn(1, 2, 3)
    HiddenMSELoss()(student, teacher).backward()
    torch.testing.assert_close(student.grad, 2 * (student - teacher).detach() / 6)


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="projection"):
        HiddenMSELoss()(torch.zeros(1, 2, 3), torch.zeros(1, 2, 4))

import pytest
import torch

from hf_mwp.losses import HiddenMSELoss


def test_value_worked_out_by_hand():
    student = torch.tensor([[[1.0, 2.0], [0.0, 0.0]]])
    teacher = torch.tensor([[[0.0, 4.0], [2.0, 0.0]]])
    # (1 + 4 + 4 + 0) / 4
    assert HiddenMSELoss()(student, teacher).item() == pytest.approx(2.25)
    # the first token alone: (1 + 4) / 2
    assert HiddenMSELoss()(student, teacher, torch.tensor([[1, 0]])).item() == pytest.approx(2.5)


def test_each_token_counts_the_same_whatever_its_text():
    student, teacher = torch.zeros(2, 3, 1), torch.ones(2, 3, 1)
    teacher[1, 0] = 5.0
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    assert HiddenMSELoss()(student, teacher, mask).item() == pytest.approx((1 + 1 + 1 + 25) / 4)


def test_identical_states_give_zero():
    states = torch.randn(2, 3, 4)
    assert HiddenMSELoss()(states, states).item() == 0.0


def test_everything_masked_is_zero():
    student = torch.randn(2, 3, 4, requires_grad=True)
    loss = HiddenMSELoss()(student, torch.randn(2, 3, 4), torch.zeros(2, 3))
    loss.backward()
    assert loss.item() == 0.0 and not student.grad.any()


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), torch.finfo(torch.float32).max])
def test_padding_may_hold_anything(rubbish):
    student = torch.tensor([[[1.0], [rubbish]]], requires_grad=True)
    teacher = torch.tensor([[[3.0], [0.0]]])
    loss = HiddenMSELoss()(student, teacher, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(4.0)
    assert student.grad.flatten().tolist() == pytest.approx([-4.0, 0.0])


def test_gradient_goes_to_the_student_alone():
    student, teacher = torch.randn(1, 2, 3, requires_grad=True), torch.randn(1, 2, 3, requires_grad=True)
    HiddenMSELoss()(student, teacher).backward()
    assert teacher.grad is None
    torch.testing.assert_close(student.grad, 2 * (student - teacher).detach() / 6)


def test_half_precision_is_computed_in_fp32():
    student, teacher = (torch.randn(2, 3, 4).to(torch.bfloat16) for _ in range(2))
    loss = HiddenMSELoss()(student, teacher)
    assert loss.dtype == torch.float32
    torch.testing.assert_close(loss, (student.float() - teacher.float()).square().mean())


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="projection"):
        HiddenMSELoss()(torch.zeros(1, 2, 3), torch.zeros(1, 2, 4))
    with pytest.raises(ValueError, match="mask"):
        HiddenMSELoss()(torch.zeros(1, 2, 3), torch.zeros(1, 2, 3), torch.ones(1, 3))


def test_citation():
    assert "Ming" in HiddenMSELoss().citation

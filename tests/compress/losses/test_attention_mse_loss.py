import pytest
import torch

from hf_mwp.compress.losses import AttentionMSELoss


# Two heads over two tokens.
STUDENT = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]])
TEACHER = torch.tensor([[[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]]])


def test_value_worked_out_by_hand():
    # First head: 0.25 + 0.25, second: 0.25 + 0.25, over 2 heads of 4 pairs each.
    assert AttentionMSELoss()(STUDENT, TEACHER).item() == pytest.approx(1.0 / 8)
    # The first token alone: one pair per head, (1 - 0.5)² and 0.
    mask = torch.tensor([[1, 0]])
    assert AttentionMSELoss()(STUDENT, TEACHER, mask).item() == pytest.approx(0.25 / 2)
    assert AttentionMSELoss.count(torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]])).item() == 16 + 4 + 1


def test_sums_and_means_over_heads():
    # Sums: [[1, 1], [1, 1]] and [[0.5, 1.5], [1.5, 0.5]]; each of the four differences is 0.5.
    assert AttentionMSELoss("sum")(STUDENT, TEACHER).item() == pytest.approx(0.25)
    assert AttentionMSELoss("mean")(STUDENT, TEACHER).item() == pytest.approx(0.25 / 4)


def test_means_need_no_equal_numbers_of_heads():
    assert AttentionMSELoss("mean")(STUDENT[:, :1], TEACHER).item() == pytest.approx(
        ((1 - 0.25) ** 2 + (0 - 0.75) ** 2 + (0.5 - 0.75) ** 2 + (0.5 - 0.25) ** 2) / 4
    )
    with pytest.raises(ValueError, match='1 heads.* 2.*"attention_mean"'):
        AttentionMSELoss()(STUDENT[:, :1], TEACHER)
    with pytest.raises(ValueError, match='1 heads.* 2.*"attention_mean"'):
        AttentionMSELoss("sum")(STUDENT[:, :1], TEACHER)


def test_padding_may_hold_anything():
    student = STUDENT.clone()
    student[..., 1] = float("nan")
    student[..., 1, :] = float("nan")
    student.requires_grad_()
    loss = AttentionMSELoss()(student, TEACHER, torch.tensor([[1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.125) and student.grad.isfinite().all()


def test_gradient_worked_out_by_hand():
    student = torch.rand(1, 2, 3, 3, requires_grad=True)
    teacher = torch.rand(1, 2, 3, 3)
    AttentionMSELoss()(student, teacher).backward()
    torch.testing.assert_close(student.grad, 2 * (student - teacher).detach() / 18)


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match=r"\(1, 0, 2, 2\)"):
        AttentionMSELoss()(torch.zeros(1, 0, 2, 2), TEACHER)
    with pytest.raises(ValueError, match='`heads`.*"each", "sum" or "mean".*\'all\''):
        AttentionMSELoss("all")

import pytest
import torch

from hf_mwp.losses import AttentionMSELoss


# Two heads over two tokens.
STUDENT = torch.tensor([[[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]])
TEACHER = torch.tensor([[[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]]])


def test_value_worked_out_by_hand():
    # First head: 0.25 + 0.25, second: 0.25 + 0.25, over 2 heads of 4 pairs each.
    assert AttentionMSELoss()(STUDENT, TEACHER).item() == pytest.approx(1.0 / 8)
    # The first token alone: one pair per head, (1 - 0.5)² and 0.
    mask = torch.tensor([[1, 0]])
    assert AttentionMSELoss()(STUDENT, TEACHER, mask).item() == pytest.approx(0.25 / 2)


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


def slow(student, teacher, mask):
    total = pairs = 0.0
    for row in range(student.shape[0]):
        for head in range(student.shape[1]):
            for query in range(student.shape[2]):
                for key in range(student.shape[3]):
                    if mask[row, query] and mask[row, key]:
                        total += (student[row, head, query, key] - teacher[row, head, query, key]).item() ** 2
                        pairs += 1
    return total / pairs


def test_pairs_of_all_texts_count_the_same():
    torch.manual_seed(0)
    student, teacher = torch.rand(3, 2, 4, 4), torch.rand(3, 2, 4, 4)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 0]])
    loss = AttentionMSELoss()(student, teacher, mask).item()
    assert loss == pytest.approx(slow(student, teacher, mask), rel=1e-5)
    assert AttentionMSELoss.count(mask).item() == 16 + 4 + 1


@pytest.mark.parametrize("heads", ["each", "sum", "mean"])
def test_limits(heads):
    loss = AttentionMSELoss(heads)
    student = torch.rand(2, 3, 4, 4, requires_grad=True)
    assert loss(student, student.detach()).item() == 0.0
    value = loss(student, torch.rand(2, 3, 4, 4), torch.zeros(2, 4))
    value.backward()
    assert value.item() == 0.0 and not student.grad.any()


def test_padding_may_hold_anything():
    student = STUDENT.clone()
    student[..., 1] = float("nan")
    student[..., 1, :] = float("nan")
    student.requires_grad_()
    loss = AttentionMSELoss()(student, TEACHER, torch.tensor([[1, 0]]))
    loss.backward()
    assert loss.item() == pytest.approx(0.125) and student.grad.isfinite().all()


def test_gradient_goes_to_the_student_alone_in_fp32():
    student, teacher = torch.rand(1, 2, 3, 3, requires_grad=True), torch.rand(1, 2, 3, 3, requires_grad=True)
    AttentionMSELoss()(student, teacher).backward()
    assert teacher.grad is None
    torch.testing.assert_close(student.grad, 2 * (student - teacher).detach() / 18)
    assert AttentionMSELoss()(student.bfloat16(), teacher.bfloat16()).dtype == torch.float32


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match=r"\(1, 0, 2, 2\)"):
        AttentionMSELoss()(torch.zeros(1, 0, 2, 2), TEACHER)
    with pytest.raises(ValueError, match=r"\(1, 2, 3, 3\).*\(1, 2, 2, 2\)"):
        AttentionMSELoss()(torch.zeros(1, 2, 3, 3), TEACHER)
    with pytest.raises(ValueError, match=r"mask.*\(1, 3\).*\(1, 2\)"):
        AttentionMSELoss()(STUDENT, TEACHER, torch.ones(1, 3))
    with pytest.raises(ValueError, match='`heads`.*"each", "sum" or "mean".*\'all\''):
        AttentionMSELoss("all")
    assert "TextBrewer" in AttentionMSELoss().citation

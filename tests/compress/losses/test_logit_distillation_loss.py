import math

import pytest
import torch

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.losses.logit_distillation_loss import DIRECTIONS


# Teacher (3/4, 1/4) against student (1/2, 1/2): 3/4 ln(3/2) + 1/4 ln(1/2).
TEACHER = [math.log(3.0), 0.0]
STUDENT = [0.0, 0.0]
DIVERGENCE = 0.75 * math.log(1.5) + 0.25 * math.log(0.5)


def test_value_worked_out_by_hand():
    loss = LogitDistillationLoss(temperature=1.0)(torch.tensor([STUDENT]), torch.tensor([TEACHER]))
    assert loss.item() == pytest.approx(DIVERGENCE, rel=1e-6)
    assert DIVERGENCE == pytest.approx(0.13081204)


def test_temperature_and_its_square():
    # At temperature 2 the logits 2 ln 3 and 0 are what ln 3 and 0 are at temperature 1.
    student = torch.tensor([STUDENT])
    teacher = 2 * torch.tensor([TEACHER])
    assert LogitDistillationLoss(2.0, scale_by_square=False)(student, teacher).item() == pytest.approx(DIVERGENCE)
    assert LogitDistillationLoss(2.0)(student, teacher).item() == pytest.approx(4 * DIVERGENCE)


def test_mean_and_batchmean_over_masked_positions():
    student = torch.zeros(2, 3, 2)
    teacher = torch.tensor([[TEACHER, TEACHER, [9.0, 0.0]], [TEACHER, [9.0, 0.0], [9.0, 0.0]]])
    mask = torch.tensor([[1, 1, 0], [1, 0, 0]])
    assert LogitDistillationLoss(1.0)(student, teacher, mask).item() == pytest.approx(DIVERGENCE)
    per_example = LogitDistillationLoss(1.0, reduction="batchmean")(student, teacher, mask)
    assert per_example.item() == pytest.approx(3 / 2 * DIVERGENCE)


def test_directions_by_hand():
    student = torch.tensor([STUDENT])
    teacher = torch.tensor([TEACHER])
    # Student (1/2, 1/2), teacher (3/4, 1/4), their mean (5/8, 3/8); (9/16, 7/16) for a quarter of the teacher.
    reverse = 0.5 * math.log(2 / 3) + 0.5 * math.log(2)
    jsd = (0.75 * math.log(1.2) + 0.25 * math.log(2 / 3) + 0.5 * math.log(0.8) + 0.5 * math.log(4 / 3)) / 2
    skew = 0.75 * math.log(4 / 3) + 0.25 * math.log(4 / 7)
    for direction, expected in (("reverse", reverse), ("jsd", jsd), ("skew", skew)):
        loss = LogitDistillationLoss(1.0, direction=direction, skew_alpha=0.25)
        assert loss(student, teacher).item() == pytest.approx(expected, rel=1e-5)
    assert LogitDistillationLoss(1.0, direction="skew", skew_alpha=0.0)(student, teacher).item() == pytest.approx(
        DIVERGENCE
    )


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("forbidden", [torch.finfo(torch.float32).min, float("-inf")])
def test_forbidden_classes_leave_loss_and_gradient_as_without_them(forbidden, direction):
    student = torch.tensor([[0.3, -1.0, 0.5]], requires_grad=True)
    teacher = torch.tensor([[1.0, 2.0, -0.5]])
    expected = LogitDistillationLoss(direction=direction)(student, teacher)
    expected.backward()
    closed = torch.full((1, 2), forbidden)
    wide = torch.cat([student.detach(), closed], 1).requires_grad_()
    loss = LogitDistillationLoss(direction=direction)(wide, torch.cat([teacher, closed], 1))
    loss.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(wide.grad[:, :3], student.grad)
    assert torch.equal(wide.grad[:, 3:], torch.zeros(1, 2))


@pytest.mark.parametrize("rubbish", [float("nan"), float("-inf"), float("inf")])
def test_padding_may_hold_anything(rubbish):
    student = torch.tensor([[STUDENT, [rubbish, rubbish]]], requires_grad=True)
    teacher = torch.tensor([[TEACHER, [rubbish, 1.0]]])
    loss = LogitDistillationLoss(1.0)(student, teacher, torch.tensor([[True, False]]))
    loss.backward()
    assert loss.item() == pytest.approx(DIVERGENCE)
    assert torch.isfinite(student.grad).all() and not student.grad[0, 1].any()


def test_wrong_use_is_named():
    with pytest.raises(ValueError, match="temperature"):
        LogitDistillationLoss(0.0)
    with pytest.raises(ValueError, match="reduction"):
        LogitDistillationLoss(reduction="sum")
    with pytest.raises(ValueError, match="direction.*'backward'"):
        LogitDistillationLoss(direction="backward")
    with pytest.raises(ValueError, match=r"skew_alpha.* 1\.0"):
        LogitDistillationLoss(skew_alpha=1.0)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("who", ["student", "teacher"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_logits_that_are_no_numbers_are_not_hidden(who, broken, direction):
    logits = {"student": torch.tensor([STUDENT]), "teacher": torch.tensor([TEACHER])}
    logits[who][0, 1] = broken
    assert LogitDistillationLoss(direction=direction)(logits["student"], logits["teacher"]).isnan()

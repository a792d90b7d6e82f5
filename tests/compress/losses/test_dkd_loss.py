import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.compress.losses import DKDLoss, LogitDistillationLoss


MIN = torch.finfo(torch.float32).min
TEACHER = torch.tensor([[0.5, 0.25, 0.25]]).log()
STUDENT = torch.tensor([[0.25, 0.25, 0.5]]).log()

# b is (1/2, 1/2) and (1/4, 3/4); the rest is (1/2, 1/2) and (1/3, 2/3).
BINARY = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)  # 0.143841
SPREAD = 0.5 * math.log(3 / 2) + 0.5 * math.log(3 / 4)  # 0.058892


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.0, 1.0), (1.0, 8.0)])
def test_by_hand(alpha, beta):
    expected = alpha * BINARY + beta * SPREAD
    loss = DKDLoss(1.0, alpha, beta)(STUDENT, TEACHER, torch.tensor([0]))
    assert loss.item() == pytest.approx(expected, rel=1e-5)
    # Twice the temperature of scores twice as large: the same, four times as heavy.
    loss = DKDLoss(2.0, alpha, beta)(2 * STUDENT, 2 * TEACHER, torch.tensor([0]))
    assert loss.item() == pytest.approx(4 * expected, rel=1e-5)
    loss = DKDLoss(2.0, alpha, beta, scale_by_square=False)(2 * STUDENT, 2 * TEACHER, torch.tensor([0]))
    assert loss.item() == pytest.approx(expected, rel=1e-5)


@given(st.integers(0, 2**31), st.integers(0, 4), st.sampled_from([1.0, 3.0]))
def test_plain_distillation_is_a_case_of_it(seed, label, temperature):
    student, teacher = torch.randn(2, 1, 5, generator=torch.Generator().manual_seed(seed)) * 3
    beta = 1 - (teacher / temperature).softmax(-1)[0, label].item()
    ours = DKDLoss(temperature, 1.0, beta)(student, teacher, torch.tensor([label]))
    assert ours.item() == pytest.approx(
        LogitDistillationLoss(temperature)(student, teacher).item(), rel=1e-4, abs=1e-5
    )


def test_several_right_classes_are_one():
    # Classes 0 and 1 together have 3/4 and 1/2; one class is left, and nothing to spread.
    targets = torch.tensor([[True, True, False]])
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert DKDLoss(1.0)(STUDENT, TEACHER, targets).item() == pytest.approx(expected, rel=1e-5)


def test_padding_and_forbidden_classes():
    student = torch.cat([STUDENT, torch.full((1, 3), math.nan)]).requires_grad_()
    teacher = torch.cat([TEACHER, torch.full((1, 3), math.nan)])
    forbidden = torch.full((2, 1), MIN)
    labels = torch.tensor([0, -100])
    mask = torch.tensor([1, 0])
    loss = DKDLoss(1.0)(torch.cat([student, forbidden], 1), torch.cat([teacher, forbidden], 1), labels, mask)
    assert loss.item() == pytest.approx(BINARY + 8 * SPREAD, rel=1e-5)
    loss.backward()
    assert student.grad.isfinite().all() and not student.grad[1].any() and student.grad[0].any()
    loss = DKDLoss(1.0, reduction="batchmean")(student, teacher, labels, mask)
    assert loss.item() == pytest.approx((BINARY + 8 * SPREAD) / 2, rel=1e-5)


def test_limits():
    student = torch.tensor([[0.0, MIN, MIN]], requires_grad=True)
    loss = DKDLoss()(student, student.detach(), torch.tensor([0]))
    loss.backward()
    assert loss.item() == 0.0 and student.grad.isfinite().all()
    sure = torch.tensor([[200.0, 0.0, 0.0]], requires_grad=True)
    DKDLoss(1.0)(sure, TEACHER, torch.tensor([0])).backward()
    assert sure.grad.isfinite().all()


def test_errors():
    for fields in ({"temperature": 0.0}, {"alpha": -1.0}, {"reduction": "sum"}):
        with pytest.raises(ValueError, match=f"`{next(iter(fields))}`"):
            DKDLoss(**fields)


@pytest.mark.parametrize("who", ["student", "teacher"])
def test_logits_that_are_no_numbers_are_not_hidden(who):
    logits = {"student": STUDENT.clone(), "teacher": TEACHER.clone()}
    logits[who][0, 1] = math.nan
    assert DKDLoss()(logits["student"], logits["teacher"], torch.tensor([0])).isnan()

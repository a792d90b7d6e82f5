import math

import pytest
import torch

from hf_mwp.compress.losses import DKDLoss


MIN = torch.finfo(torch.float32).min
TEACHER = torch.tensor([[0.5, 0.25, 0.25]]).log()
STUDENT = torch.tensor([[0.25, 0.25, 0.5]]).log()
LABEL = torch.tensor([0])

# b is (1/2, 1/2) and (1/4, 3/4); the rest is (1/2, 1/2) and (1/3, 2/3).
BINARY = 0.5 * math.log(2) + 0.5 * math.log(2 / 3)  # 0.143841
REST = 0.5 * math.log(3 / 2) + 0.5 * math.log(3 / 4)  # 0.058892


@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 0.0), (0.0, 1.0), (1.0, 8.0)])
def test_value_by_hand(alpha, beta):
    expected = alpha * BINARY + beta * REST
    # Twice the temperature of logits twice as large: the same, times four unless it is not scaled.
    for temperature, scale_by_square, factor in ((1.0, True, 1), (2.0, True, 4), (2.0, False, 1)):
        loss = DKDLoss(temperature, alpha, beta, scale_by_square)
        value = loss(temperature * STUDENT, temperature * TEACHER, LABEL)
        assert value.item() == pytest.approx(factor * expected, rel=1e-5)


def test_several_correct_classes_are_one():
    # Classes 0 and 1 together have 3/4 and 1/2; one class is left, and nothing to compare in it.
    targets = torch.tensor([[True, True, False]])
    expected = 0.75 * math.log(0.75 / 0.5) + 0.25 * math.log(0.25 / 0.5)
    assert DKDLoss(1.0)(STUDENT, TEACHER, targets).item() == pytest.approx(expected, rel=1e-5)


def test_padding_and_forbidden_classes_do_not_count():
    padding = torch.full((1, 3), math.nan)
    student = torch.cat([STUDENT, padding]).requires_grad_()
    forbidden = torch.full((2, 1), MIN)
    teacher = torch.cat([torch.cat([TEACHER, padding]), forbidden], 1)
    labels = torch.tensor([0, -100])
    loss = DKDLoss(1.0)(torch.cat([student, forbidden], 1), teacher, labels, torch.tensor([1, 0]))
    assert loss.item() == pytest.approx(BINARY + 8 * REST, rel=1e-5)
    loss.backward()
    assert student.grad.isfinite().all() and student.grad[0].any()


@pytest.mark.parametrize("logits", [[0.0, MIN, MIN], [200.0, 0.0, 0.0]])
def test_certain_students_have_a_finite_gradient(logits):
    student = torch.tensor([logits], requires_grad=True)
    DKDLoss(1.0)(student, student.detach() / 2, LABEL).backward()
    assert student.grad.isfinite().all()


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"alpha": -1.0}, {"reduction": "sum"}])
def test_impossible_options_raise(options):
    with pytest.raises(ValueError, match=f"`{next(iter(options))}`"):
        DKDLoss(**options)


@pytest.mark.parametrize("side", ["student", "teacher"])
def test_nan_logits_give_a_nan_loss(side):
    logits = {"student": STUDENT.clone(), "teacher": TEACHER.clone()}
    logits[side][0, 1] = math.nan
    assert DKDLoss()(logits["student"], logits["teacher"], LABEL).isnan()

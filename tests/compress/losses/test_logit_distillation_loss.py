import math

import pytest
import torch

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.losses.logit_distillation_loss import DIRECTIONS


# Teacher (3/4, 1/4) against student (1/2, 1/2): 3/4 ln(3/2) + 1/4 ln(1/2).
TEACHER = torch.tensor([[math.log(3.0), 0.0]])
STUDENT = torch.zeros(1, 2)
DIVERGENCE = 0.13081204


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"temperature": 1.0}, DIVERGENCE),
        ({"temperature": 2.0}, 4 * DIVERGENCE),
        ({"temperature": 2.0, "scale_by_square": False}, DIVERGENCE),
        ({"temperature": 1.0, "direction": "reverse"}, 0.5 * math.log(2 / 3) + 0.5 * math.log(2)),
        (
            {"temperature": 1.0, "direction": "skew", "skew_alpha": 0.25},
            0.75 * math.log(4 / 3) + 0.25 * math.log(4 / 7),
        ),
        ({"temperature": 1.0, "direction": "skew", "skew_alpha": 0.0}, DIVERGENCE),
    ],
)
def test_value_by_hand(options, expected):
    loss = LogitDistillationLoss(**options)
    # At temperature T, T times the logits have the probabilities above.
    assert loss(STUDENT, options["temperature"] * TEACHER).item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("forbidden", [torch.finfo(torch.float32).min, float("-inf")])
def test_forbidden_classes_change_neither_loss_nor_gradient(forbidden, direction):
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
    assert not wide.grad[:, 3:].any()


@pytest.mark.parametrize(
    "options", [{"temperature": 0.0}, {"reduction": "sum"}, {"direction": "backward"}, {"skew_alpha": 1.0}]
)
def test_impossible_options_raise(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        LogitDistillationLoss(**options)


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("side", ["student", "teacher"])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_logits_that_are_not_finite_give_a_nan_loss(side, broken, direction):
    logits = {"student": STUDENT.clone(), "teacher": TEACHER.clone()}
    logits[side][0, 1] = broken
    assert LogitDistillationLoss(direction=direction)(logits["student"], logits["teacher"]).isnan()

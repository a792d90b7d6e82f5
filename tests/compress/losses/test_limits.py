"""Losses that divide by norms at their limits: tiny and huge states, collapsed students."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.compress.losses import CKALoss, cka_loss
from tests.compress.losses.hidden_states import CENTRED, LOSSES, compute, gradient, states
from tests.slow_parameters import slow_after


WIDTH = 6


@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("tokens", [4, 9])
def test_gradient_of_a_collapsed_student_equals_finite_differences(name, tokens):
    # The norm that the division stops at is a constant, so perturb directions that do not change it to first order.
    teacher = states(2, tokens, WIDTH, seed=1)
    token = torch.zeros(2, tokens, WIDTH, dtype=torch.float64)
    token[..., 0] = 1.0
    spread = 1e-4 * states(2, tokens, WIDTH - 1)

    def loss_of(spread):
        return compute(name, token + torch.nn.functional.pad(spread, (1, 0)), teacher)

    analytic = torch.autograd.grad(loss_of(spread.requires_grad_()), spread)[0]
    step = 1e-8 * states(*spread.shape, seed=3)
    expected = (loss_of(spread.detach() + step) - loss_of(spread.detach() - step)) / 2
    assert (analytic * step).sum().item() == pytest.approx(expected.item(), rel=1e-3)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tokens", [4, 9])  # fewer and more than features
@pytest.mark.parametrize("scales", [(1e-8, 1.0), (1.0, 1e-8), (1e8, 1.0), (1.0, 1e8), (1e-2, 1e-2)])
def test_scale_does_not_matter(name, tokens, scales):
    student = states(1, tokens, WIDTH, dtype=torch.float32)
    teacher = states(1, tokens, WIDTH, seed=1, dtype=torch.float32)
    value, slope = gradient(name, student, teacher)
    scaled, scaled_slope = gradient(name, student * scales[0], teacher * scales[1])
    torch.testing.assert_close(scaled, value, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(scaled_slope * scales[0], slope, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("spread", [0.0, 1e-6, 1e-4, 1e-3])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", LOSSES)
def test_gradient_of_a_collapsed_student_is_bounded(name, scale, spread):
    token = states(1, 1, WIDTH, seed=2, dtype=torch.float32)
    for tokens in (4, 9):
        teacher = states(2, tokens, WIDTH, seed=1, dtype=torch.float32)
        student = scale * (token + spread * states(2, tokens, WIDTH, dtype=torch.float32))
        value, slope = gradient(name, student, teacher)
        assert value.isfinite() and slope.isfinite().all()
        # The gradient of a loss that does not depend on the scale of the states is inversely proportional to it.
        assert slope.norm() * scale < 3e4


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("zeros", [slice(None), 0])
def test_states_of_zero_have_a_bounded_gradient(name, zeros):
    student = states(18, WIDTH, dtype=torch.float32)
    student[zeros] = 0.0
    value, slope = gradient(name, student.view(2, 9, WIDTH), states(2, 9, WIDTH, seed=1, dtype=torch.float32))
    assert value.isfinite() and slope.norm() < 1e4


@pytest.mark.parametrize("squared", slow_after(1, [False, True]))
def test_unbiased_cka_of_unrelated_states_has_a_gradient_and_is_around_chance(squared):
    loss = CKALoss(squared, unbiased=True)
    values = []
    for seed in range(100):
        student = states(1, 32, 8, seed=2 * seed).requires_grad_()
        value = loss(student, states(1, 32, 8, seed=2 * seed + 1))
        value.backward()
        assert student.grad.norm() > 1e-4
        values.append(value.item())
    below_chance = sum(value > 1 for value in values)
    assert 30 < below_chance < 70
    assert max(values) < 1.5


def test_signed_root_by_hand():
    values = torch.tensor([-1.0, -0.25, -0.001, -0.0001, 0.0, 0.0001, 0.001, 0.25, 1.0], dtype=torch.float64)
    root = 0.001**0.5
    expected = [-1.0, -0.5, -root, -0.1 * root, 0.0, 0.1 * root, root, 0.5, 1.0]
    assert cka_loss._signed_root(values).tolist() == pytest.approx(expected)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(LOSSES)),
    valid=st.lists(st.booleans(), min_size=4, max_size=12).filter(lambda flags: sum(flags) >= 4),
    seed=st.integers(0, 10**6),
    magnitude=st.floats(-8, 8),
)
def test_invariance_and_descent_for_any_states(name, valid, seed, magnitude):
    mask = torch.tensor([valid])
    student = states(1, len(valid), WIDTH, seed=seed)
    teacher = states(1, len(valid), WIDTH, seed=seed + 1)
    value, slope = gradient(name, student, teacher, mask)
    assert -1e-9 <= value <= 4 + 1e-9
    # Scale and a rotation of both sides do not matter; for losses of any width, a rotation or a shift of one side.
    rotation = torch.linalg.qr(states(WIDTH, WIDTH, seed=seed + 2))[0]
    moved = 10.0**magnitude * student @ rotation
    moved_teacher = teacher
    if name in CENTRED:
        moved = moved + 7 * 10.0**magnitude
    elif not name.startswith("CKD"):
        moved_teacher = teacher @ rotation
    torch.testing.assert_close(compute(name, moved, moved_teacher, mask), value, rtol=1e-6, atol=1e-7)
    # A step against the gradient, which padding does not get, does not increase the loss.
    assert not slope[~mask].any()
    step = 1e-4 * slope / slope.norm().clamp(min=1e-12)
    assert compute(name, student - step, teacher, mask) <= value + 1e-9
    # Equal states, of any scale, have the smallest loss.
    assert compute(name, 10.0**magnitude * teacher, teacher, mask).item() == pytest.approx(0.0, abs=1e-6)

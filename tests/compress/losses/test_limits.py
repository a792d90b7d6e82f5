"""Losses that divide by norms at their limits: tiny and huge states, collapsed students, few tokens."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.compress.losses import (
    CKALoss,
    CKDPairLoss,
    CKDTripleLoss,
    CosineLoss,
    GramLoss,
    PKDLoss,
    ProcrustesLoss,
    cka_loss,
    procrustes_loss,
    product_loss,
)
from hf_mwp.compress.losses.cka_loss import CKAStatistics


CENTRED = {
    **{
        f"CKA {'unbiased' * unbiased} {'squared' * squared}": CKALoss(squared, unbiased)
        for squared in (False, True)
        for unbiased in (False, True)
    },
    "Gram": GramLoss(),
    "Procrustes": ProcrustesLoss(),
}
DIRECTIONS = {
    "cosine": CosineLoss(),
    "PKD": PKDLoss(),
    "CKD pairs": CKDPairLoss(),
    "CKD triples": CKDTripleLoss(2),
}
LOSSES = CENTRED | DIRECTIONS

WIDTH = 6


def states(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def compute(name, student, teacher, mask=None):
    if name == "PKD":
        student = [student]
        teacher = [teacher]
    return LOSSES[name](student, teacher, mask)


def gradient(name, student, teacher, mask=None):
    student = student.detach().requires_grad_()
    value = compute(name, student, teacher, mask)
    value.backward()
    return value.detach(), student.grad


@pytest.mark.parametrize("name", DIRECTIONS)
def test_gradients_are_those_of_finite_differences(name):
    teacher = states(2, 5, WIDTH, seed=1)
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
    student = states(2, 5, WIDTH).requires_grad_()
    assert torch.autograd.gradcheck(lambda x: compute(name, x, teacher, mask), student)


@pytest.mark.parametrize("name", CENTRED)
@pytest.mark.parametrize("tokens", [4, 9])
def test_gradients_of_a_collapsed_student_are_those_of_finite_differences(name, tokens):
    # The norm that the division stops at is a constant, so perturb directions that do not change it to first order.
    teacher = states(2, tokens, WIDTH, seed=1)
    base = torch.zeros(2, tokens, WIDTH, dtype=torch.float64)
    base[..., 0] = 1.0
    spread = 1e-4 * states(2, tokens, WIDTH - 1)

    def of_spread(spread):
        student = base + torch.nn.functional.pad(spread, (1, 0))
        return compute(name, student, teacher)

    analytic = torch.autograd.grad(of_spread(spread.requires_grad_()), spread)[0]
    step = 1e-8 * states(*spread.shape, seed=3)
    expected = (of_spread(spread.detach() + step) - of_spread(spread.detach() - step)) / 2
    assert (analytic * step).sum().item() == pytest.approx(expected.item(), rel=1e-3)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tokens", [4, 9])  # fewer and more than features
def test_scale_does_not_matter(name, tokens, dtype):
    student = states(1, tokens, WIDTH, dtype=dtype)
    teacher = states(1, tokens, WIDTH, seed=1, dtype=dtype)
    value, slope = gradient(name, student, teacher)
    for scale in (1e-8, 1e-4, 1e-2, 1e2, 1e8):
        for of_student, of_teacher in ((scale, 1.0), (1.0, scale), (scale, scale)):
            scaled, scaled_slope = gradient(name, student * of_student, teacher * of_teacher)
            torch.testing.assert_close(scaled, value, rtol=1e-5, atol=1e-5)
            torch.testing.assert_close(scaled_slope * of_student, slope, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("tokens", [4, 9])
def test_gradients_of_a_collapsed_student_are_bounded(name, tokens, scale, spread):
    teacher = states(2, tokens, WIDTH, seed=1, dtype=torch.float32)
    token = states(1, 1, WIDTH, seed=2, dtype=torch.float32)
    student = scale * (token + spread * states(2, tokens, WIDTH, dtype=torch.float32))
    value, slope = gradient(name, student, teacher)
    assert value.isfinite() and slope.isfinite().all()
    # The gradient of a loss that does not depend on the scale of the states is inversely proportional to it.
    assert slope.norm() * scale < 3e4


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("which", ["all", "one token"])
def test_states_of_zero_have_a_zero_or_bounded_gradient(name, which):
    student = states(2, 9, WIDTH, dtype=torch.float32)
    teacher = states(2, 9, WIDTH, seed=1, dtype=torch.float32)
    student[0, 0] = 0.0
    if which == "all":
        student.zero_()
    value, slope = gradient(name, student, teacher)
    assert value.isfinite() and slope.norm() < 1e4


@pytest.mark.parametrize("name", CENTRED)
def test_too_few_tokens_are_nan_with_a_zero_gradient_where_the_device_is_not_waited_for(name, monkeypatch):
    for module in (product_loss, cka_loss, procrustes_loss):
        monkeypatch.setattr(module, "check_rows", lambda *args: None)
    least = LOSSES[name].min_rows
    for count in range(least + 1):
        mask = torch.zeros(2, 9, dtype=torch.bool)
        mask[0, :count] = True
        value, slope = gradient(name, states(2, 9, WIDTH), states(2, 9, WIDTH, seed=1), mask)
        assert value.isnan() == (0 < count < least)
        assert slope.isfinite().all() and slope.any() == (count >= least)
        if count == 0:
            assert value == 0


@pytest.mark.parametrize("squared", [False, True])
def test_unbiased_cka_has_a_gradient_for_all_unrelated_states(squared):
    loss = CKALoss(squared, unbiased=True)
    values = []
    for seed in range(100):
        student = states(1, 32, 8, seed=2 * seed).requires_grad_()
        value = loss(student, states(1, 32, 8, seed=2 * seed + 1))
        value.backward()
        assert student.grad.norm() > 1e-4
        values.append(value.item())
    negative = sum(value > 1 for value in values)
    assert 30 < negative < 70  # unrelated states are as often below chance as above
    assert max(values) < 1.5


def test_the_signed_root_by_hand():
    values = torch.tensor([-1.0, -0.25, -0.001, -0.0001, 0.0, 0.0001, 0.001, 0.25, 1.0], dtype=torch.float64)
    root = 0.001**0.5
    expected = [-1.0, -0.5, -root, -0.1 * root, 0.0, 0.1 * root, root, 0.5, 1.0]
    assert cka_loss._signed_root(values).tolist() == pytest.approx(expected)


@pytest.mark.parametrize("squared", [False, True])
def test_batches_of_one_token_are_pooled(squared):
    loss = CKALoss(squared)
    student = states(1, 6, 5).requires_grad_()
    teacher = states(1, 6, 7, seed=1)
    parts = []
    for first, last in ((0, 1), (1, 3), (3, 3), (3, 5), (5, 6)):
        mask = torch.zeros(1, 6)
        mask[0, first:last] = 1
        parts.append(loss.statistics(student, teacher, mask))
    pooled = loss.from_statistics(CKAStatistics(*(sum(sums) for sums in zip(*parts, strict=True))))
    whole = loss(student, teacher)
    torch.testing.assert_close(pooled, whole, rtol=1e-9, atol=1e-9)
    slopes = [torch.autograd.grad(value, student)[0] for value in (pooled, whole)]
    torch.testing.assert_close(*slopes, rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="at least 3 valid tokens, but this step has 2"):
        loss.from_statistics(parts[1])
    assert loss.from_statistics(parts[2]) == 0


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_pooled_statistics_of_tiny_huge_and_collapsed_states(scale):
    loss = CKALoss()
    teacher = states(2, 9, WIDTH, seed=1, dtype=torch.float32)
    student = states(2, 9, WIDTH, dtype=torch.float32)
    value = loss.from_statistics(loss.statistics(scale * student, scale * teacher))
    assert value.item() == pytest.approx(loss(student, teacher).item(), rel=1e-5)
    collapsed = (scale * (1 + 1e-6 * student)).requires_grad_()
    loss.from_statistics(loss.statistics(collapsed, teacher)).backward()
    assert collapsed.grad.norm() * scale < 3e4


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    name=st.sampled_from(sorted(LOSSES)),
    tokens=st.integers(4, 12),
    seed=st.integers(0, 10**6),
    magnitude=st.floats(-8, 8),
    data=st.data(),
)
def test_any_states(name, tokens, seed, magnitude, data):
    valid = data.draw(st.lists(st.booleans(), min_size=tokens, max_size=tokens).filter(lambda x: sum(x) >= 4))
    mask = torch.tensor([valid])
    student = states(1, tokens, WIDTH, seed=seed)
    teacher = states(1, tokens, WIDTH, seed=seed + 1)
    value, slope = gradient(name, student, teacher, mask)
    assert -1e-9 <= value <= 4 + 1e-9
    # Scale, and a rotation of both sides, do not matter; for losses of any width, of one side.
    rotation = torch.linalg.qr(states(WIDTH, WIDTH, seed=seed + 2))[0]
    one_side = name in CENTRED or name.startswith("CKD")
    moved = 10.0**magnitude * student @ rotation
    other = teacher if one_side else teacher @ rotation
    torch.testing.assert_close(compute(name, moved, other, mask), value, rtol=1e-6, atol=1e-7)
    # A step against the gradient, which padding does not get, does not increase the loss.
    assert not slope[~mask].any()
    step = 1e-4 * slope / slope.norm().clamp(min=1e-12)
    assert compute(name, student - step, teacher, mask) <= value + 1e-9
    # Equal states, of any scale, have the smallest loss.
    assert compute(name, 10.0**magnitude * teacher, teacher, mask).item() == pytest.approx(0.0, abs=1e-6)

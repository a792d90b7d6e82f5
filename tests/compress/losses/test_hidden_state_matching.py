"""Losses on centred hidden states of any width: gradients, pooled statistics, memory, groups of texts."""

import pytest
import torch

from hf_mwp.compress.losses import CKALoss, GramLoss, cka_loss, procrustes_loss, product_loss
from hf_mwp.compress.losses.cka_loss import CKAStatistics
from hf_mwp.compress.losses.state_loss import masked
from tests.compress.losses.hidden_states import CENTRED, DIRECTIONS, compute, gradient, states
from tests.slow_parameters import slow_except


@pytest.mark.parametrize(
    ("name", "widths"),
    [
        *slow_except([(name, (4, 6)) for name in CENTRED], ("CKA", (4, 6)), ("Gram", (4, 6)), ("Procrustes", (4, 6))),
        *slow_except((name, (12, 11)) for name in CENTRED),
        *[(name, (6, 6)) for name in DIRECTIONS],
    ],
)
def test_gradient_equals_finite_differences(name, widths):
    student = states(2, 5, widths[0]).requires_grad_()
    teacher = states(2, 5, widths[1], seed=1)
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
    assert torch.autograd.gradcheck(lambda hidden: compute(name, hidden, teacher, mask), student)


@pytest.mark.parametrize("name", CENTRED)
def test_dead_features_have_finite_gradients(name):
    teacher = states(2, 9, 6, dtype=torch.float32)
    student = states(2, 9, 5, dtype=torch.float32)
    student[..., 2:] = 0
    for dead_from in (6, 1):
        teacher[..., dead_from:] = 1
        value, slope = gradient(name, student, teacher)
        assert value.isfinite() and slope.isfinite().all()


@pytest.mark.parametrize("name", CENTRED)
def test_too_few_tokens_raise_on_the_cpu_and_are_nan_elsewhere(name, monkeypatch):
    loss = CENTRED[name]
    assert loss.min_rows == (4 if "unbiased" in name else 3)
    for number in range(loss.min_rows + 1):
        mask = torch.zeros(2, 9, dtype=torch.bool)
        mask[0, :number] = True
        student = states(2, 9, 6)
        teacher = states(2, 9, 6, seed=1)
        is_too_few = 0 < number < loss.min_rows
        if is_too_few:
            with pytest.raises(ValueError, match=f"at least {loss.min_rows} valid tokens"):
                loss(student, teacher, mask)
        with monkeypatch.context() as patch:
            # Accelerators are not waited for.
            for module in (product_loss, cka_loss, procrustes_loss):
                patch.setattr(module, "check_rows", lambda *args: None)
            value, slope = gradient(name, student, teacher, mask)
        assert value.isnan() == is_too_few
        assert slope.isfinite().all() and slope.any() == (number >= loss.min_rows)


@pytest.mark.parametrize("name", CENTRED)
def test_autocast_does_not_reach_the_products(name):
    student = states(2, 9, 5, dtype=torch.float32)
    teacher = states(2, 9, 6, seed=1, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = compute(name, student, teacher)
    assert value.dtype == torch.float32
    assert torch.equal(value, compute(name, student, teacher))


@pytest.mark.parametrize("squared", [False, True])
def test_statistics_of_batches_add_up_to_those_of_all_tokens(squared):
    loss = CKALoss(squared)
    student = (50 + states(1, 6, 5)).requires_grad_()
    teacher = states(1, 6, 7, seed=1)
    batches = []
    # Batches of one, two and no tokens.
    for first, last in ((0, 1), (1, 3), (3, 3), (3, 5), (5, 6)):
        mask = torch.zeros(1, 6)
        mask[0, first:last] = 1
        batches.append(loss.statistics(student, teacher, mask))
    pooled = loss.from_statistics(CKAStatistics(*map(sum, zip(*batches, strict=True))))
    whole = loss(student, teacher)
    torch.testing.assert_close(pooled, whole, rtol=1e-9, atol=1e-9)
    pooled_slope = torch.autograd.grad(pooled, student)[0]
    torch.testing.assert_close(pooled_slope, torch.autograd.grad(whole, student)[0], rtol=1e-7, atol=1e-9)
    with pytest.raises(ValueError, match="at least 3 valid tokens, but this step has 2"):
        loss.from_statistics(batches[1])
    assert loss.from_statistics(batches[2]) == 0


def test_unbiased_cka_has_no_statistics():
    with pytest.raises(ValueError, match="unbiased"):
        CKALoss(unbiased=True).statistics(states(4, 5, 6), states(4, 5, 3))


@pytest.mark.parametrize("scale", [1e-8, 1.0, 1e8])
def test_statistics_of_tiny_huge_and_collapsed_states(scale):
    loss = CKALoss()
    teacher = states(2, 9, 6, seed=1, dtype=torch.float32)
    student = states(2, 9, 6, dtype=torch.float32)
    value = loss.from_statistics(loss.statistics(scale * student, scale * teacher))
    assert value.item() == pytest.approx(loss(student, teacher).item(), rel=1e-5)
    collapsed = (scale * (1 + 1e-6 * student)).requires_grad_()
    loss.from_statistics(loss.statistics(collapsed, teacher)).backward()
    assert collapsed.grad.norm() * scale < 3e4


@pytest.mark.parametrize(("tokens", "widths"), [(6, (40, 50)), (60, (5, 7))])
def test_no_matrix_is_larger_than_the_states(tokens, widths):
    sizes = []

    class Sizes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                sizes.append(result.numel())
            return result

    student = states(1, tokens, widths[0])
    teacher = states(1, tokens, widths[1], seed=1)
    for loss in CENTRED.values():
        with Sizes():
            loss(student, teacher)
    assert max(sizes) <= tokens * max(widths)


@pytest.mark.parametrize("loss", [CKALoss(), CKALoss(squared=True), GramLoss()], ids=repr)
@pytest.mark.parametrize("widths", [(5, 7), pytest.param((150, 300), marks=pytest.mark.slow)])
def test_groups_of_texts_equal_one_batch(loss, widths):
    mask = states(9, 300, seed=2) > -0.5
    mask[2] = False
    student = 20 + states(9, 300, widths[0])
    teacher = 20 + states(9, 300, widths[1], seed=1)
    student[~mask] = 1e6
    teacher[~mask] = float("nan")
    in_groups = student.clone().requires_grad_()
    value = loss(in_groups, teacher, mask)
    value.backward()
    at_once = student.clone().requires_grad_()
    expected = loss.compare(masked(at_once, mask), masked(teacher, mask), mask)
    expected.backward()
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-12)
    assert (in_groups.grad - at_once.grad).norm() < 1e-11 * at_once.grad.norm()
    assert not in_groups.grad[~mask].any()

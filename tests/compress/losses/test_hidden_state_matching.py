"""Losses on centred hidden states of any width: values by hand, invariance, pooling, limits."""

import math

import pytest
import torch

from hf_mwp.compress.losses import CKALoss, CosineLoss, GramLoss, ProcrustesLoss
from hf_mwp.compress.losses.cka_loss import CKAStatistics
from hf_mwp.compress.losses.state_loss import masked


LOSSES = [
    *(CKALoss(squared, unbiased) for squared in (False, True) for unbiased in (False, True)),
    GramLoss(),
    ProcrustesLoss(),
]


def states(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def test_values_by_hand():
    # Centred: (-1, 0, 1) and the columns (-1, 0, 1), (1, -2, 1).
    student = torch.tensor([[[0.0], [1.0], [2.0]]])
    teacher = torch.tensor([[[0.0, 3.0], [1.0, 0.0], [2.0, 3.0]]])
    # S'T = (2, 0), S'S = 2, T'T = diag(2, 6).
    assert CKALoss(squared=True)(student, teacher).item() == pytest.approx(1 - 4 / (2 * math.sqrt(40)))
    assert CKALoss()(student, teacher).item() == pytest.approx(1 - math.sqrt(4 / (2 * math.sqrt(40))))
    # Unit norms divide by sqrt(2) and sqrt(8).
    assert ProcrustesLoss()(student, teacher).item() == pytest.approx(2 - 2 * 2 / 4)
    assert GramLoss()(student, teacher).item() == pytest.approx(1 + 40 / 64 - 2 * 4 / 16)
    ours = torch.tensor([[[3.0, 4.0], [1.0, 0.0]]])
    theirs = torch.tensor([[[0.0, 2.0], [-1.0, 0.0]]])
    assert CosineLoss()(ours, theirs).item() == pytest.approx(((1 - 0.8) + 2) / 2)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("widths", [(5, 9), (40, 60)])
def test_rotation_scale_and_shift_do_not_matter(loss, widths):
    student = states(2, 9, widths[0])
    teacher = states(2, 9, widths[1], seed=1)
    rotation = torch.linalg.qr(states(widths[0], widths[0], seed=2))[0]
    moved = 3.5 * student @ rotation + 7
    torch.testing.assert_close(loss(moved, teacher), loss(student, teacher), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("widths", [(4, 6), (30, 25)])
def test_gradients_are_those_of_finite_differences(loss, widths):
    student = states(2, 5, widths[0]).requires_grad_()
    teacher = states(2, 5, widths[1], seed=1)
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 0, 0]])
    assert torch.autograd.gradcheck(lambda x: loss(x, teacher, mask), student)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_gradients_are_finite_for_dead_features_and_a_collapsed_student(loss):
    teacher = states(2, 9, 6, dtype=torch.float32)
    dead = states(2, 9, 5, dtype=torch.float32)
    dead[..., 2:] = 0
    for student in (dead, torch.ones(2, 9, 5), torch.zeros(2, 9, 5), teacher.clone()):
        student.requires_grad_()
        value = loss(student, teacher)
        value.backward()
        assert value.isfinite() and student.grad.isfinite().all()
    teacher[..., 1:] = 1
    assert loss(dead, teacher).isfinite()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_too_few_tokens_are_refused(loss):
    least = 4 if getattr(loss, "unbiased", False) else 3
    for count in range(1, least):
        mask = torch.zeros(2, 4)
        mask[0, :count] = 1
        with pytest.raises(ValueError, match=f"at least {least} valid tokens"):
            loss(states(2, 4, 3), states(2, 4, 5), mask)
    mask[0, :least] = 1
    assert loss(states(2, 4, 3), states(2, 4, 5), mask).isfinite()


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_autocast_does_not_reach_the_products(loss):
    student = states(2, 9, 5, dtype=torch.float32)
    teacher = states(2, 9, 6, seed=1, dtype=torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        value = loss(student, teacher)
    assert value.dtype == torch.float32
    assert torch.equal(value, loss(student, teacher))


@pytest.mark.parametrize("squared", [False, True])
def test_statistics_of_parts_add_up_to_those_of_the_whole(squared):
    loss = CKALoss(squared)
    student = 50 + states(8, 4, 5)
    teacher = states(8, 4, 6, seed=1)
    mask = torch.ones(8, 4).tril_(3)
    parts = [loss.statistics(student[rows], teacher[rows], mask[rows]) for rows in (slice(0, 4), slice(4, 8))]
    pooled = CKAStatistics(*(sum(each) for each in zip(*parts, strict=True)))
    whole = loss(student, teacher, mask)
    torch.testing.assert_close(loss.from_statistics(pooled), whole, rtol=1e-9, atol=1e-9)
    apart = [loss(student[rows], teacher[rows], mask[rows]) for rows in (slice(0, 4), slice(4, 8))]
    assert abs(sum(apart) / 2 - whole) > 0.01


def test_the_gradient_through_statistics_is_that_of_the_whole():
    loss = CKALoss()
    student = states(4, 5, 6).requires_grad_()
    teacher = states(4, 5, 3, seed=1)
    expected = torch.autograd.grad(loss(student, teacher), student)[0]
    found = torch.autograd.grad(loss.from_statistics(loss.statistics(student, teacher)), student)[0]
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-12)
    with pytest.raises(ValueError, match="unbiased"):
        CKALoss(unbiased=True).statistics(student, teacher)


@pytest.mark.parametrize(("tokens", "widths"), [(6, (40, 50)), (60, (5, 7))])
def test_no_matrix_is_larger_than_it_need_be(tokens, widths):
    sizes = []

    class Sizes(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            sizes.extend(each.numel() for each in (result,) if isinstance(each, torch.Tensor))
            return result

    student = states(1, tokens, widths[0])
    teacher = states(1, tokens, widths[1], seed=1)
    for loss in LOSSES:
        with Sizes():
            loss(student, teacher)
    assert max(sizes) <= tokens * max(widths)


@pytest.mark.parametrize("loss", [CKALoss(), CKALoss(squared=True), GramLoss()], ids=repr)
@pytest.mark.parametrize("widths", [(5, 7), (150, 300)])
def test_groups_of_texts_are_one_batch(loss, widths):
    generator = torch.Generator().manual_seed(0)
    states = [20 + torch.randn(9, 300, width, dtype=torch.float64, generator=generator) for width in widths]
    mask = torch.rand(9, 300, generator=generator) > 0.3
    mask[2] = False
    states[0][~mask], states[1][~mask] = 1e6, float("nan")
    values = []
    gradients = []

    def at_once(student, teacher, mask):
        return loss.compare(masked(student, mask), masked(teacher, mask), mask)

    for compute in (loss, at_once):
        student = states[0].clone().requires_grad_()
        values.append(compute(student, states[1], mask))
        values[-1].backward()
        gradients.append(student.grad)
    torch.testing.assert_close(*values, rtol=1e-12, atol=1e-12)
    assert (gradients[0] - gradients[1]).norm() < 1e-11 * gradients[1].norm()
    assert gradients[0][~mask].eq(0).all()

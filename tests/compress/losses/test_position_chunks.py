"""Losses on large logits, computed in chunks of positions, and divergences between the most likely classes."""

import math

import pytest
import torch

from hf_mwp.compress.losses import DKDLoss, LogitDistillationLoss, position_chunks
from hf_mwp.compress.losses.logit_distillation_loss import DIRECTIONS, merge_other_classes


LOSSES = {direction: LogitDistillationLoss(2.0, direction=direction) for direction in DIRECTIONS}
LOSSES["first classes"] = LogitDistillationLoss(2.0, num_classes=9)
LOSSES["dkd"] = DKDLoss(2.0)


def batch(seed=0):
    torch.manual_seed(seed)
    student = torch.randn(3, 5, 11, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(3, 5, 11, dtype=torch.float64)
    mask = torch.rand(3, 5) < 0.7
    return student, teacher, mask, torch.randint(0, 9, (3, 5))


def value_and_gradient(loss, student, *arguments, **options):
    student.grad = None
    value = loss(student, *arguments, **options)
    (3 * value).backward()
    return value.detach(), student.grad


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("size", [1, 11, 40, 150])
def test_chunks_equal_the_whole(name, size, monkeypatch):
    student, teacher, mask, targets = batch()
    arguments = [teacher, targets, mask] if name == "dkd" else [teacher, mask]
    expected = value_and_gradient(LOSSES[name], student, *arguments)
    monkeypatch.setattr(position_chunks, "CHUNK_SIZE", size)
    actual = value_and_gradient(LOSSES[name], student, *arguments)
    torch.testing.assert_close(actual, expected, rtol=1e-12, atol=1e-15)
    with torch.no_grad():
        torch.testing.assert_close(LOSSES[name](student, *arguments), expected[0], rtol=1e-12, atol=1e-15)


def test_largest_tensor_of_a_chunked_loss_is_the_gradient(monkeypatch):
    monkeypatch.setattr(position_chunks, "CHUNK_SIZE", 22)
    student, teacher, mask, _ = batch()
    sizes = []
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: sizes.append(tensor.numel()) or tensor, lambda x: x):
        LOSSES["forward"](student, teacher, mask)
    assert sizes.count(student.numel()) == 1
    assert max(size for size in sizes if size != student.numel()) <= 22


def test_second_backward_pass_of_a_chunked_loss_is_an_error(monkeypatch):
    monkeypatch.setattr(position_chunks, "CHUNK_SIZE", 22)
    student, teacher, mask, _ = batch()
    loss = LOSSES["forward"](student, teacher, mask)
    loss.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_other_classes_are_merged():
    log_probs = torch.tensor([0.5, 0.1, 0.3, 0.1]).log()
    merged = merge_other_classes(log_probs, torch.tensor([2, 0]))
    assert merged.exp().tolist() == pytest.approx([0.3, 0.5, 0.2])
    # If no class is left, the rest has no probability, and a finite gradient.
    log_probs.requires_grad_()
    merged = merge_other_classes(log_probs, torch.arange(4))
    assert merged.exp().tolist() == pytest.approx([0.5, 0.1, 0.3, 0.1, 0.0])
    merged[:4].sum().backward()
    assert log_probs.grad.tolist() == [1.0, 1.0, 1.0, 1.0]


def top_of(teacher, count, temperature):
    log_probs = (teacher / temperature).log_softmax(-1)
    top_classes = log_probs.topk(count, -1).indices
    return merge_other_classes(log_probs, top_classes), top_classes


@pytest.mark.parametrize("name", LOSSES)
def test_all_classes_as_top_classes_equal_the_full_loss(name, monkeypatch):
    student, teacher, mask, targets = batch()
    num_classes = LOSSES[name].num_classes or 11
    targets = [targets] if name == "dkd" else []
    expected = value_and_gradient(LOSSES[name], student, teacher, *targets, mask)
    log_probs, top_classes = top_of(teacher[..., :num_classes], num_classes, 2.0)
    for size in (22, 10**9):
        monkeypatch.setattr(position_chunks, "CHUNK_SIZE", size)
        actual = value_and_gradient(LOSSES[name], student, log_probs, *targets, mask, top_classes=top_classes)
        torch.testing.assert_close(actual, expected, rtol=1e-9, atol=1e-12)


def test_top_classes_by_hand():
    teacher = torch.tensor([[0.6, 0.2, 0.1, 0.1]]).log()
    student = torch.tensor([[0.3, 0.3, 0.3, 0.1]]).log()
    log_probs, top_classes = top_of(teacher, 1, 1.0)
    expected = 0.6 * math.log(0.6 / 0.3) + 0.4 * math.log(0.4 / 0.7)
    loss = LogitDistillationLoss(1.0)(student, log_probs, top_classes=top_classes)
    assert loss.item() == pytest.approx(expected, rel=1e-6)
    # More classes tell more, and the divergence of merged classes is never larger.
    full = LogitDistillationLoss(1.0)(student, teacher).item()
    losses = []
    for count in (1, 2, 3):
        log_probs, top_classes = top_of(teacher, count, 1.0)
        losses.append(LogitDistillationLoss(1.0)(student, log_probs, top_classes=top_classes).item())
    assert losses == sorted(losses)
    assert losses[-1] == pytest.approx(full, rel=1e-6)


def test_padding_does_not_count_in_merged_classes():
    student, teacher, mask, targets = batch()
    log_probs, top_classes = top_of(teacher, 3, 2.0)
    for name in DIRECTIONS:
        loss, gradient = value_and_gradient(LOSSES[name], student, log_probs, mask, top_classes=top_classes)
        expected = LOSSES[name](student[mask], log_probs[mask], top_classes=top_classes[mask])
        torch.testing.assert_close(loss, expected.detach(), rtol=1e-9, atol=1e-12)
        assert (gradient[~mask] == 0).all()
    nothing = torch.zeros_like(mask)
    loss, gradient = value_and_gradient(LOSSES["forward"], student, log_probs, nothing, top_classes=top_classes)
    assert loss == 0
    assert (gradient == 0).all()

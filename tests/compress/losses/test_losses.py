"""Properties that all losses share, over one table of them. Values worked out by hand are in the other files."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch

from hf_mwp.compress import losses
from tests.compress.losses import naive


MASK = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 1, 0, 1, 1], [0, 0, 0, 0, 0]])
LABELS = torch.arange(20).view(4, 5) % 6


@dataclass(frozen=True)
class Case:
    """A loss, its reference, and the widths (of attention maps: the heads) of the tensors of student and teacher."""

    loss: torch.nn.Module
    reference: Callable
    student: tuple[int, ...]
    teacher: tuple[int, ...]
    count: int | None = None  # what the loss averages `MASK` over
    tolerance: float = 1e-6  # how far from 0 it may be for equal models

    def tensors(self, side, tokens=MASK.shape[1]):
        """Random values `(texts, tokens, width)`, or `(texts, heads, tokens, tokens)`, that require gradients."""
        generator = torch.Generator().manual_seed(1 if side == "student" else 2)
        tensors = []
        for width in getattr(self, side):
            shape = (len(MASK), tokens, width)
            if isinstance(self.loss, losses.AttentionMSELoss):
                shape = (len(MASK), width, tokens, tokens)
            tensors.append(torch.randn(*shape, generator=generator).requires_grad_())
        return tensors

    def arguments(self, student, teacher, mask):
        """A single layer is passed without a list, and labels where the loss reads them."""
        sides = [student, teacher]
        if len(student) == 1:
            sides = [student[0], teacher[0]]
        if isinstance(self.loss, losses.DKDLoss):
            sides.append(LABELS)
        return [*sides, mask]

    def __call__(self, student, teacher, mask=MASK):
        return self.loss(*self.arguments(student, teacher, mask))


def changed(tensors, change):
    return [change(tensor.detach()).requires_grad_() for tensor in tensors]


def padding_of(tensor):
    """True where a value belongs to no valid token."""
    valid = MASK.bool()
    if tensor.dim() == 4:
        return ~(valid[:, None, :, None] & valid[:, None, None, :]).expand_as(tensor)
    return ~valid.unsqueeze(-1).expand_as(tensor)


CASES = {
    "attention": Case(losses.AttentionMSELoss(), naive.attention, (2,), (2,), 38),
    "attention, sums": Case(losses.AttentionMSELoss("sum"), naive.attention, (2,), (2,), 38),
    "attention, means": Case(losses.AttentionMSELoss("mean"), naive.attention, (2,), (3,), 38),
    "hidden": Case(losses.HiddenMSELoss(), naive.hidden_mse, (3,), (3,)),
    "FSP": Case(losses.FSPLoss(), naive.fsp, (3, 2), (3, 2), 3),
    "NST": Case(losses.NSTLoss(), naive.nst, (3,), (7,), 38),
    "NST of two layers": Case(losses.NSTLoss(), naive.nst_of_two_layers, (3, 3), (7, 7), 38),
    "PKD": Case(losses.PKDLoss(), naive.pkd, (3, 3), (3, 3), 3),
    "CKA": Case(losses.CKALoss(), naive.cka, (4,), (7,), tolerance=1e-5),
    "CKA, more features than tokens": Case(losses.CKALoss(), naive.cka, (20,), (12,), tolerance=1e-5),
    "CKA, squared": Case(losses.CKALoss(squared=True), naive.cka, (7,), (4,), tolerance=1e-5),
    "CKA, unbiased": Case(losses.CKALoss(True, unbiased=True), naive.cka, (4,), (7,), tolerance=1e-5),
    "cosine": Case(losses.CosineLoss(), naive.cosine, (3,), (3,)),
    "Gram": Case(losses.GramLoss(), naive.gram, (4,), (7,)),
    "Gram, more features than tokens": Case(losses.GramLoss(), naive.gram, (20,), (12,)),
    "Procrustes": Case(losses.ProcrustesLoss(), naive.procrustes, (4,), (7,)),
    "Procrustes, more features": Case(losses.ProcrustesLoss(), naive.procrustes, (20,), (12,)),
    "CKD, pairs": Case(losses.CKDPairLoss(), naive.ckd_pairs, (4,), (3,), 14),
    "CKD, triples, window 1": Case(losses.CKDTripleLoss(1), naive.ckd_triples, (4,), (3,), 3),
    "CKD, triples, window 2": Case(losses.CKDTripleLoss(2), naive.ckd_triples, (4,), (3,), 15),
    "CKD, triples": Case(losses.CKDTripleLoss(), naive.ckd_triples, (4,), (3,), 33),
    "relations": Case(losses.RelationLoss(2), naive.relations, (4,), (8,)),
    "logits": Case(losses.LogitDistillationLoss(), naive.logits, (6,), (6,)),
    "logits, batchmean": Case(losses.LogitDistillationLoss(2.0, reduction="batchmean"), naive.logits, (6,), (6,)),
    "logits, reverse": Case(losses.LogitDistillationLoss(2.0, direction="reverse"), naive.logits, (6,), (6,)),
    "logits, jsd": Case(losses.LogitDistillationLoss(2.0, direction="jsd"), naive.logits, (6,), (6,)),
    "logits, skew": Case(losses.LogitDistillationLoss(2.0, direction="skew"), naive.logits, (6,), (6,)),
    "DKD": Case(losses.DKDLoss(), naive.dkd, (6,), (6,)),
    "DKD, batchmean": Case(losses.DKDLoss(1.0, 0.5, 3.0, reduction="batchmean"), naive.dkd, (6,), (6,)),
}


@pytest.fixture(params=CASES)
def case(request):
    return CASES[request.param]


@pytest.fixture
def student(case):
    return case.tensors("student")


@pytest.fixture
def teacher(case):
    return case.tensors("teacher")


def test_every_loss_is_in_the_table_and_cited():
    table = {type(case.loss).__name__: case.loss for case in CASES.values()}
    assert set(table) == set(losses.__all__) - {"SoftenedLoss", "StateLoss"}
    for loss in table.values():
        assert loss.citation.startswith("@")


@pytest.mark.parametrize("mask", [MASK, torch.ones_like(MASK), None], ids=["padded", "whole", "no mask"])
def test_loss_equals_its_slow_reference(case, student, teacher, mask):
    reference_mask = torch.ones_like(MASK) if mask is None else mask
    with torch.no_grad():
        expected = case.reference(case.loss, *case.arguments(student, teacher, reference_mask))
    assert case(student, teacher, mask).item() == pytest.approx(float(expected), rel=1e-4)
    if case.count is not None:
        assert case.loss.count(MASK).item() == case.count


def test_equal_models_have_zero_loss_and_gradient(case, student):
    value = case(student, [tensor.detach() for tensor in student])
    value.backward()
    assert value.item() == pytest.approx(0.0, abs=case.tolerance)
    for tensor in student:
        assert tensor.grad.abs().max() < 1e-6


def test_everything_masked_is_zero(case, student, teacher):
    value = case(student, teacher, torch.zeros_like(MASK))
    value.backward()
    assert value.item() == 0.0
    for tensor in student:
        assert not tensor.grad.any()


@pytest.mark.parametrize("rubbish", [float("nan"), float("-inf"), torch.finfo(torch.float32).max])
def test_padding_reaches_neither_loss_nor_gradient(case, student, teacher, rubbish):
    def fill(tensor):
        return tensor.masked_fill(padding_of(tensor), rubbish)

    expected = case(student, teacher)
    expected.backward()
    filled_student = changed(student, fill)
    value = case(filled_student, changed(teacher, fill))
    value.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    for clean, filled in zip(student, filled_student, strict=True):
        torch.testing.assert_close(filled.grad, clean.grad)
        assert not filled.grad[padding_of(filled)].any()


def test_only_the_student_gets_a_gradient(case, student, teacher):
    case(student, teacher).backward()
    for tensor in student:
        assert tensor.grad.any()
    for tensor in teacher:
        assert tensor.grad is None


def test_half_precision_is_computed_in_fp32(case, student, teacher):
    student = changed(student, torch.Tensor.bfloat16)
    teacher = changed(teacher, torch.Tensor.bfloat16)
    value = case(student, teacher)
    assert value.dtype == torch.float32
    expected = case(changed(student, torch.Tensor.float), changed(teacher, torch.Tensor.float))
    torch.testing.assert_close(value, expected)


def test_mismatched_shapes_raise(case, student, teacher):
    with pytest.raises(ValueError, match=r"mask.*\(4, 7\).*\(4, 5\)"):
        case(student, teacher, torch.ones(4, 7))
    with pytest.raises(ValueError, match=r"\(4, .*\b[45]\b.*\(4, .*\b[45]\b"):
        case(student, case.tensors("teacher", tokens=4))

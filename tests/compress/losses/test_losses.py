"""What all losses have in common, over one table of them. Values worked out by hand stand in a file per loss."""

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
    """A loss, the widths of the tensors that it takes of student and teacher, and what is known of it."""

    loss: torch.nn.Module
    student: tuple[int, ...]
    teacher: tuple[int, ...]
    slow: Callable
    citation: str
    equal: float = 0.0  # How far from 0 it may be for equal models.
    labelled: bool = False

    def tensors(self, which, tokens=MASK.shape[1]):
        """Random values `(texts, tokens, width)`, or `(texts, heads, tokens, tokens)`, that ask for gradients."""
        generator = torch.Generator().manual_seed(1 + (which == "teacher"))
        attention = isinstance(self.loss, losses.AttentionMSELoss)
        shapes = [(n, tokens, tokens) if attention else (tokens, n) for n in getattr(self, which)]
        return [torch.randn(len(MASK), *shape, generator=generator).requires_grad_() for shape in shapes]

    def __call__(self, student, teacher, mask=MASK):
        ours, theirs = (x if len(x) > 1 or isinstance(self.loss, losses.PKDLoss) else x[0] for x in (student, teacher))
        return self.loss(ours, theirs, *([LABELS] if self.labelled else []), mask)

    def truth(self, student, teacher, mask):
        tensors = [[x.detach() for x in each] for each in (student, teacher)]
        found = self.slow(self.loss, *tensors, *([LABELS] if self.labelled else []), mask)
        return found if isinstance(found, tuple) else (found, None)


def padded(tensor):
    """True at what belongs to no valid token."""
    valid = MASK.bool()
    if tensor.dim() == 4:
        return ~(valid.unsqueeze(-1) & valid.unsqueeze(-2)).unsqueeze(1).expand_as(tensor)
    return ~valid.unsqueeze(-1).expand_as(tensor)


SOFT = 1e-6
CASES = {
    "attention": Case(losses.AttentionMSELoss(), (2,), (2,), naive.attention, "TextBrewer"),
    "attention, sums": Case(losses.AttentionMSELoss("sum"), (2,), (2,), naive.attention, "TextBrewer"),
    "attention, means": Case(losses.AttentionMSELoss("mean"), (2,), (3,), naive.attention, "TextBrewer"),
    "hidden": Case(losses.HiddenMSELoss(), (3,), (3,), naive.hidden_mse, "Ming"),
    "FSP": Case(losses.FSPLoss(), (3, 2), (3, 2), naive.fsp, "Yim"),
    "NST": Case(losses.NSTLoss(), (3,), (7,), naive.nst, "Huang"),
    "NST of two layers": Case(losses.NSTLoss(), (3, 3), (7, 7), naive.nst, "Huang"),
    "PKD": Case(losses.PKDLoss(), (3, 3), (3, 3), naive.pkd, "sun2019patient"),
    "CKA": Case(losses.CKALoss(), (4,), (7,), naive.cka, "dasgupta2025", 1e-5),
    "CKA, more features than tokens": Case(losses.CKALoss(), (20,), (12,), naive.cka, "dasgupta2025", 1e-5),
    "CKA, squared": Case(losses.CKALoss(squared=True), (7,), (4,), naive.cka, "dasgupta2025", 1e-5),
    "CKA, unbiased": Case(losses.CKALoss(True, unbiased=True), (4,), (7,), naive.cka, "dasgupta2025", 1e-5),
    "cosine": Case(losses.CosineLoss(), (3,), (3,), naive.cosine, "sanh2019", SOFT),
    "Gram": Case(losses.GramLoss(), (4,), (7,), naive.gram, "2509.25253", SOFT),
    "Gram, more features than tokens": Case(losses.GramLoss(), (20,), (12,), naive.gram, "2509.25253", SOFT),
    "Procrustes": Case(losses.ProcrustesLoss(), (4,), (7,), naive.procrustes, "2509.25253", SOFT),
    "Procrustes, more features": Case(losses.ProcrustesLoss(), (20,), (12,), naive.procrustes, "2509.25253", SOFT),
    "CKD, pairs": Case(losses.CKDPairLoss(), (4,), (3,), naive.ckd_pairs, "park2021distilling", SOFT),
    **{
        f"CKD, triples, window {window}": Case(
            losses.CKDTripleLoss(window), (4,), (3,), naive.ckd_triples, "park2021distilling", SOFT
        )
        for window in (1, 2, 3, None)
    },
    "relations": Case(losses.RelationLoss(2), (4,), (8,), naive.relations, "wang2021minilmv2", SOFT),
    "logits": Case(losses.LogitDistillationLoss(), (6,), (6,), naive.logits, "1503.02531", SOFT),
    "logits, batchmean": Case(
        losses.LogitDistillationLoss(2.0, reduction="batchmean"), (6,), (6,), naive.logits, "1503.02531", SOFT
    ),
    **{
        f"logits, {direction}": Case(
            losses.LogitDistillationLoss(2.0, direction=direction), (6,), (6,), naive.logits, "1503.02531", SOFT
        )
        for direction in ("reverse", "jsd", "skew")
    },
    "DKD": Case(losses.DKDLoss(), (6,), (6,), naive.dkd, "zhao2022decoupled", SOFT, labelled=True),
    "DKD, batchmean": Case(
        losses.DKDLoss(1.0, 0.5, 3.0, reduction="batchmean"),
        (6,),
        (6,),
        naive.dkd,
        "zhao2022decoupled",
        SOFT,
        labelled=True,
    ),
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


def test_every_loss_is_in_the_table():
    assert {type(case.loss).__name__ for case in CASES.values()} == set(losses.__all__)


@pytest.mark.parametrize("mask", [MASK, torch.ones_like(MASK), None], ids=["padded", "whole", "no mask"])
def test_a_slow_version_agrees(case, student, teacher, mask):
    value, count = case.truth(student, teacher, torch.ones_like(MASK) if mask is None else mask)
    assert case(student, teacher, mask).item() == pytest.approx(float(value), rel=1e-4)
    if count is not None and mask is not None:
        assert case.loss.count(mask).item() == count


def test_a_student_that_equals_its_teacher_learns_nothing(case, student):
    value = case(student, [x.detach() for x in student])
    value.backward()
    assert value.item() == pytest.approx(0.0, abs=case.equal)
    assert all(x.grad.abs().max() < 1e-6 for x in student)


def test_everything_masked_is_zero(case, student, teacher):
    value = case(student, teacher, torch.zeros_like(MASK))
    value.backward()
    assert value.item() == 0.0 and not any(x.grad.any() for x in student)


@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), float("-inf"), torch.finfo(torch.float32).max])
def test_padding_may_hold_anything(case, student, teacher, rubbish):
    expected = case(student, teacher)
    expected.backward()
    ours, theirs = (
        [x.detach().masked_fill(padded(x), rubbish).requires_grad_() for x in each] for each in (student, teacher)
    )
    value = case(ours, theirs)
    value.backward()
    assert value.item() == pytest.approx(expected.item(), rel=1e-6)
    for clean, dirty in zip(student, ours, strict=True):
        torch.testing.assert_close(dirty.grad, clean.grad)
        assert not dirty.grad[padded(dirty)].any()


def test_the_gradient_goes_to_the_student_alone(case, student, teacher):
    case(student, teacher).backward()
    assert all(x.grad.any() for x in student) and all(x.grad is None for x in teacher)


def test_half_precision_is_computed_in_fp32(case, student, teacher):
    ours, theirs = ([x.detach().bfloat16() for x in each] for each in (student, teacher))
    value = case(ours, theirs)
    assert value.dtype == torch.float32
    torch.testing.assert_close(value, case([x.float() for x in ours], [x.float() for x in theirs]))


def test_shapes_that_do_not_fit_are_named(case, student, teacher):
    with pytest.raises(ValueError, match=r"mask.*\(4, 7\).*\(4, 5\)"):
        case(student, teacher, torch.ones(4, 7))
    with pytest.raises(ValueError, match=r"\(4, .*\b[45]\b.*\(4, .*\b[45]\b"):
        case(student, case.tensors("teacher", tokens=4))


def test_it_is_cited(case):
    assert case.citation in case.loss.citation

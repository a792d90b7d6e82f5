"""Losses that divide by norms, and random hidden states for them."""

import torch

from hf_mwp.compress.losses import (
    CKALoss,
    CKDPairLoss,
    CKDTripleLoss,
    CosineLoss,
    GramLoss,
    PKDLoss,
    ProcrustesLoss,
)


CENTRED = {
    "CKA": CKALoss(),
    "CKA squared": CKALoss(squared=True),
    "CKA unbiased": CKALoss(unbiased=True),
    "CKA squared and unbiased": CKALoss(squared=True, unbiased=True),
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


def states(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(dtype)


def compute(name, student, teacher, mask=None):
    if name == "PKD":
        student = [student]
        teacher = [teacher]
    return LOSSES[name](student, teacher, mask)


def gradient(name, student, teacher, mask=None):
    """The value of a loss and its gradient with respect to the student."""
    student = student.detach().requires_grad_()
    value = compute(name, student, teacher, mask)
    value.backward()
    return value.detach(), student.grad

"""Checks of the losses' inputs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch


def check_pairs(student: Sequence[torch.Tensor], teacher: Sequence[torch.Tensor]) -> None:
    """Raises `ValueError` unless both are two states `(batch, tokens, width)` for the same tokens."""
    for who, states in (("student", student), ("teacher", teacher)):
        if len(states) != 2:
            raise ValueError(f"The {who}'s states of two layers are needed, got {len(states)}.")
    check_layers(student, teacher)


def check_layers(student: Sequence[torch.Tensor], teacher: Sequence[torch.Tensor]) -> None:
    """Raises `ValueError` unless both are equally many states `(batch, tokens, width)` for the same tokens."""
    if not student or len(student) != len(teacher):
        raise ValueError(f"The student's states are of {len(student)} layers, the teacher's of {len(teacher)}.")
    shapes = {tuple(state.shape[:2]) if state.dim() == 3 else tuple(state.shape) for state in (*student, *teacher)}
    if len(shapes) > 1 or any(state.dim() != 3 for state in student):
        raise ValueError(
            f"Student and teacher have states for tokens of the shapes {sorted(shapes)}: states (batch, tokens, "
            "width) for the same tokens are needed."
        )


def check_equal_width(student: torch.Tensor, teacher: torch.Tensor) -> None:
    """Raises `ValueError` unless states of a pair of layers have the same shape."""
    if student.shape != teacher.shape:
        raise ValueError(
            f"The student's hidden states have the shape {tuple(student.shape)}, the teacher's "
            f"{tuple(teacher.shape)}. Different widths need a projection; apply it to the student's first."
        )


def check_logits(student: torch.Tensor, teacher: torch.Tensor) -> None:
    """Raises `ValueError` unless logits have the same shape."""
    if student.shape != teacher.shape:
        raise ValueError(
            f"The student's logits have the shape {tuple(student.shape)}, the teacher's {tuple(teacher.shape)}: they "
            "must classify the same positions into the same classes."
        )


def check_softening(temperature: float, reduction: str) -> None:
    """Raises `ValueError` unless a loss on logits can be made with these arguments."""
    if not temperature > 0:
        raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
    if reduction not in ("mean", "batchmean"):
        raise ValueError(f'`reduction` must be "mean" or "batchmean", got {reduction!r}.')


def valid_tokens(mask: torch.Tensor | None, states: torch.Tensor) -> torch.Tensor:
    """A mask as booleans, true if there is none; raises `ValueError` unless it is for the vectors `(..., width)`."""
    if mask is None:
        return states.new_ones(states.shape[:-1], dtype=torch.bool)
    if mask.shape != states.shape[:-1]:
        raise ValueError(
            f"The mask has the shape {tuple(mask.shape)}, but what it is for has tokens of the shape "
            f"{tuple(states.shape[:-1])}."
        )
    return mask.bool()


def without_autocast(tensor: torch.Tensor) -> AbstractContextManager:
    """Return a context in which products on the tensor's device keep the precision of their inputs."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()

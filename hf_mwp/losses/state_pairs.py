"""Checks of losses that read states of layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def check_pairs(student: Sequence[torch.Tensor], teacher: Sequence[torch.Tensor]) -> None:
    """Raises `ValueError` unless both are two states `(batch, tokens, width)` for the same tokens."""
    for who, states in (("student", student), ("teacher", teacher)):
        if len(states) != 2:
            raise ValueError(f"The {who}'s states of two layers are needed, got {len(states)}.")
        if any(state.dim() != 3 or state.shape[:2] != states[0].shape[:2] for state in states):
            raise ValueError(
                f"The {who}'s states have the shapes {tuple(states[0].shape)} and {tuple(states[1].shape)}: two "
                "layers' states (batch, tokens, width) for the same tokens are needed."
            )
    ours, theirs = student[0].shape, teacher[0].shape
    if ours[:2] != theirs[:2]:
        raise ValueError(
            f"The student has states for {tuple(ours[:2])} tokens, the teacher for {tuple(theirs[:2])}: both must "
            "read the same tokens."
        )


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


def check_mask(mask: torch.Tensor, states: torch.Tensor) -> None:
    """Raises `ValueError` unless a mask has one entry for each token."""
    if mask.shape != states.shape[:2]:
        raise ValueError(
            f"The mask has the shape {tuple(mask.shape)}, but the hidden states have tokens of the shape "
            f"{tuple(states.shape[:2])}."
        )

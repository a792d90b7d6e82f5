"""Checks of the inputs of losses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch


def check_layers(student: Sequence[torch.Tensor], teacher: Sequence[torch.Tensor], count: int | None = None) -> None:
    """Raises `ValueError` unless both are `count` states `(batch, tokens, width)` for the same tokens."""
    if not student or len(student) != len(teacher) or count not in (None, len(student)):
        needed = "" if count is None else f"; {count} of each are needed"
        raise ValueError(
            f"The student's states are of {len(student)} layers, the teacher's of {len(teacher)}{needed}."
        )
    shapes = {tuple(state.shape[:2]) if state.dim() == 3 else tuple(state.shape) for state in (*student, *teacher)}
    if len(shapes) > 1 or any(state.dim() != 3 for state in student):
        raise ValueError(
            f"Student and teacher have states for tokens of the shapes {sorted(shapes)}: states (batch, tokens, "
            "width) for the same tokens are needed."
        )


def check_shapes(name: str, student: torch.Tensor, teacher: torch.Tensor) -> None:
    """Raises `ValueError` unless what is compared has the same shape."""
    if student.shape != teacher.shape:
        raise ValueError(
            f"The student's {name} have the shape {tuple(student.shape)}, the teacher's {tuple(teacher.shape)}: they "
            "must be equal; different widths need a projection first."
        )


def check_softening(temperature: float, reduction: str) -> None:
    """Raises `ValueError` unless a loss on logits can be made with these arguments."""
    if not temperature > 0:
        raise ValueError(f"`temperature` must be greater than 0, got {temperature}.")
    check_choice("reduction", reduction, ("mean", "batchmean"))


def check_choice(name: str, value: Any, choices: Sequence[str]) -> None:
    """Raises `ValueError` unless an argument is one of some choices."""
    if value not in choices:
        raise ValueError(f"`{name}` must be one of {list(choices)}, got {value!r}.")


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

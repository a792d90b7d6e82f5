"""Base class of losses between states of a student and of its teacher."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn


class StateLoss(nn.Module):
    """
    Base class of losses between states of student and teacher. A derived class implements `compare`, which gets the
    states of one layer, or lists of them: in fp32 (fp64 stays), also under autocast, with zeros at padding, and
    without a gradient to the teacher.

    Attributes:
        needs_equal_width (`bool`): Whether student and teacher must have the same widths; trainers put a projection in
            front if they do not.
        num_layers (`int`, *optional*): Number of layers whose states are compared together; any number if `None`.
    """

    needs_equal_width = False
    num_layers: int | None = 1

    def forward(
        self,
        student_hidden: Tensor | Sequence[Tensor],
        teacher_hidden: Tensor | Sequence[Tensor],
        mask: Tensor | None = None,
    ) -> Tensor:
        """
        Return the scalar loss; zero, with a zero gradient, if no token is valid.

        Args:
            student_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`):
                States `(batch, tokens, width)` of a layer; a sequence of them where several layers are compared.
            teacher_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`): The same of the teacher.
            mask (`torch.Tensor` of shape `(batch, tokens)`, *optional*): True or non-zero where a token counts.

        Raises:
            ValueError: states of another number of layers, of other tokens, or of unequal widths where these must be
                equal.
        """
        ours, theirs, mask = self.prepare(student_hidden, teacher_hidden, mask)
        with without_autocast(mask):
            return self.compare(*((ours[0], theirs[0]) if self.num_layers == 1 else (ours, theirs)), mask)

    def compare(self, ours: Tensor | list[Tensor], theirs: Tensor | list[Tensor], mask: Tensor) -> Tensor:
        raise NotImplementedError

    def prepare(
        self, student: Tensor | Sequence[Tensor], teacher: Tensor | Sequence[Tensor], mask: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Check the arguments of `forward`, and return what `compare` gets, a list of states for each side."""
        ours, theirs, mask = self.check(student, teacher, mask)
        return [masked(state, mask) for state in ours], [masked(state, mask) for state in theirs], mask

    def check(
        self, student: Tensor | Sequence[Tensor], teacher: Tensor | Sequence[Tensor], mask: Tensor | None
    ) -> tuple[list[Tensor], list[Tensor], Tensor]:
        """Check the arguments of `forward`, and return them as lists of states, the teacher's without gradient."""
        number = self.num_layers or 1
        ours, theirs = ([x] * number if isinstance(x, Tensor) else list(x) for x in (student, teacher))
        if not ours or not len(ours) == len(theirs) == (self.num_layers or len(ours)):
            raise ValueError(
                f"States of {self.num_layers or 'equally many'} layers are needed, got {len(ours)} layers of the "
                f"student and {len(theirs)} of the teacher."
            )
        shapes = {tuple(state.shape[:-1]) for state in (*ours, *theirs)}
        if len(shapes) > 1:
            raise ValueError(
                f"Student and teacher have states for tokens of the shapes {sorted(shapes)}: those of the same tokens "
                "are needed."
            )
        widths = [[state.shape[-1] for state in states] for states in (ours, theirs)]
        if self.needs_equal_width and widths[0] != widths[1]:
            raise ValueError(
                f"The student's hidden states have the widths {widths[0]}, the teacher's {widths[1]}. Different "
                "widths need a projection; apply it to the student's first."
            )
        return ours, [state.detach() for state in theirs], valid_tokens(mask, ours[0])


def count_texts(mask: Tensor) -> Tensor:
    """Number of texts over which a batch is averaged; batches of one step are weighted by it."""
    return mask.bool().any(-1).sum()


def count_token_pairs(mask: Tensor) -> Tensor:
    """Number of pairs of tokens, of a mask of either, over which a batch is averaged; batches are weighted by it."""
    return mask.bool().sum() if mask.dim() == 3 else mask.bool().sum(-1).square().sum()


def valid_tokens(mask: Tensor | None, states: Tensor) -> Tensor:
    """A mask as booleans, true if there is none; raises `ValueError` unless it is for the vectors `(..., width)`."""
    if mask is None:
        return states.new_ones(states.shape[:-1], dtype=torch.bool)
    if mask.shape != states.shape[:-1]:
        raise ValueError(
            f"The mask has the shape {tuple(mask.shape)}, but what it is for has tokens of the shape "
            f"{tuple(states.shape[:-1])}."
        )
    return mask.bool()


def masked(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return vectors in fp32 (fp64 stays), with zeros where the mask is false."""
    # `where` and not a product: whatever stands at padded places, NaN included, must not reach the loss.
    return torch.where(mask.unsqueeze(-1), vectors.to(torch.promote_types(vectors.dtype, torch.float32)), 0.0)


def without_autocast(tensor: Tensor) -> AbstractContextManager:
    """Return a context in which products on the tensor's device keep the precision of their inputs."""
    kind = tensor.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()

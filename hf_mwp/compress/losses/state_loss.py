"""Base class of losses between hidden states of student and teacher, and functions that all losses share."""

from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from .precision import at_least_fp32, without_autocast


States = Tensor | Sequence[Tensor]
# Differences between states below this share of the norm of the states are mostly rounding errors. They are not scaled
# up to unit norm, since gradients would be arbitrarily large.
COLLAPSED = 1e-3
CITATIONS = Path(__file__).with_name("citations.bib").read_text(encoding="utf-8").strip().split("\n\n")


class StateLoss(nn.Module):
    """Base class of losses between hidden states of student and teacher. A derived class implements `compare`, which
    receives the states of one layer, or lists of states. They are in fp32 (fp64 stays fp64), also under autocast, with
    zeros at padding and without a gradient to the teacher."""

    needs_equal_width = False  # whether trainers must add a projection if the widths differ
    num_layers: int | None = 1  # number of layers that are compared together; `None` allows any number

    def forward(self, student_hidden: States, teacher_hidden: States, mask: Tensor | None = None) -> Tensor:
        """Return the scalar loss for states `(batch, tokens, width)`, or sequences of states if several layers are
        compared. It is zero, with a zero gradient, if no token of `mask` `(batch, tokens)` is valid. Raises
        `ValueError` for different numbers of layers, tokens, or widths that must be the same."""
        return self.of_states(*self.check(student_hidden, teacher_hidden, mask))

    def of_states(self, student_hidden: list[Tensor], teacher_hidden: list[Tensor], mask: Tensor) -> Tensor:
        """Return the loss of the lists of states and the mask that `check` returns."""
        student = [masked(hidden, mask) for hidden in student_hidden]
        teacher = [masked(hidden, mask) for hidden in teacher_hidden]
        if self.num_layers == 1:
            [student] = student
            [teacher] = teacher
        with without_autocast(mask):
            return self.compare(student, teacher, mask)

    def compare(
        self, student_hidden: Tensor | list[Tensor], teacher_hidden: Tensor | list[Tensor], mask: Tensor
    ) -> Tensor:
        """Return the scalar loss of states `(batch, tokens, width)`, or of lists of them if `num_layers` is not 1,
        with the `mask` `(batch, tokens)` of valid tokens, which may all be 0."""
        raise NotImplementedError

    def check(self, student: States, teacher: States, mask: Tensor | None) -> tuple[list, list, Tensor]:
        """Check the arguments of `forward` and return lists of states, the teacher's without gradient, and a mask."""
        student_states = self._list(student)
        teacher_states = self._list(teacher)
        num_layers = self.num_layers or len(student_states)
        if not student_states or not len(student_states) == len(teacher_states) == num_layers:
            raise ValueError(
                f"Expected {self.num_layers or 'equally many'} layers from both models, got {len(student_states)} "
                f"layers from the student and {len(teacher_states)} from the teacher."
            )
        student_shapes = _token_shapes(student_states)
        teacher_shapes = _token_shapes(teacher_states)
        num_compared = 2 if self.needs_equal_width else 1
        for student_shape, teacher_shape in zip(student_shapes, teacher_shapes, strict=True):
            if student_shape[:num_compared] != teacher_shape[:num_compared]:
                raise ValueError(
                    f"The student's hidden states have the tokens and widths {student_shapes}, the teacher's "
                    f"{teacher_shapes}. Pass states of the same tokens. If the widths differ, apply a projection to "
                    "the student's states first."
                )
        return student_states, [hidden.detach() for hidden in teacher_states], valid_tokens(mask, student_states[0])

    def _list(self, states: States) -> list[Tensor]:
        """Return the states of each layer. A single tensor is used for all layers that are compared."""
        if isinstance(states, Tensor):
            return [states] * (self.num_layers or 1)
        return list(states)


def _token_shapes(states: list[Tensor]) -> list[tuple[tuple[int, ...], int]]:
    """Return the shape of the tokens and the width of each layer."""
    return [(tuple(hidden.shape[:-1]), hidden.shape[-1]) for hidden in states]


def count_texts(mask: Tensor) -> Tensor:
    """Return the number of texts that a batch is averaged over. Batches of one step are weighted by it."""
    return mask.bool().any(-1).sum()


def count_token_pairs(mask: Tensor) -> Tensor:
    """Return the number of token pairs that a batch is averaged over, from a mask of tokens or of pairs."""
    if mask.dim() == 3:
        return mask.bool().sum()
    return mask.bool().sum(-1).square().sum()


def valid_tokens(mask: Tensor | None, states: Tensor) -> Tensor:
    """Return a mask as booleans, all true for `None`. Raises `ValueError` if it does not fit states `(..., width)`."""
    if mask is None:
        return states.new_ones(states.shape[:-1], dtype=torch.bool)
    if mask.shape != states.shape[:-1]:
        raise ValueError(f"The mask has the shape {tuple(mask.shape)}, the tokens {tuple(states.shape[:-1])}.")
    return mask.bool()


def masked(vectors: Tensor, mask: Tensor) -> Tensor:
    """Return vectors in fp32 (fp64 stays fp64), with zeros where the mask is false."""
    # `where` instead of a product: values at padding, NaN included, must not reach the loss.
    return torch.where(mask.unsqueeze(-1), at_least_fp32(vectors), 0.0)


def directions(vectors: Tensor, sizes: Tensor | None = None) -> Tensor:
    """Return vectors `(..., width)` divided by their norms. Vectors with a norm below a thousandth of `sizes` (by
    default the mean norm of all vectors that are not zero) are divided by that, which bounds the gradient."""
    norms = vectors.norm(dim=-1, keepdim=True)
    if sizes is None:
        sizes = norms.sum() / (norms > 0).sum().clamp(min=1)
    smallest = COLLAPSED * sizes.detach()
    norms = torch.where(norms > smallest, norms, smallest)
    return vectors / torch.where(norms == 0, 1.0, norms)


def citation_of(key: str) -> str:
    """Return the BibTeX entry of `citations.bib` with a key."""
    return next(entry for entry in CITATIONS if f"{{{key}," in entry)

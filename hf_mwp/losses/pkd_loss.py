"""Distillation of what several layers say of a whole text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from .checks import check_equal_width, check_layers, valid_tokens


class PKDLoss(nn.Module):
    r"""
    Purpose: draws the first token's states (`[CLS]`) of several layers of the student towards those of the teacher,
    each brought to length 1: squared distance, averaged over layers and texts; computed in fp32. A patient student
    learns from many layers instead of the last alone.

    References:
        - Patient Knowledge Distillation for BERT Model Compression: https://huggingface.co/papers/1908.09355 (equation
          7, there a sum over layers and texts)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`pkd`)

    Requirements:
        1. Student and teacher have the same widths: where they differ, the caller first applies trained linear maps.

    Inputs:
        - student_hidden (`Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of some layers.
        - teacher_hidden (`Sequence[torch.Tensor]`): as many, of the same shapes; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts; the first one of
          a text is its `[CLS]`.

    Relations: [`HiddenMSELoss`] compares all tokens, and their lengths as well.

    Example:
        >>> PKDLoss()(student_states[1:4], teacher_states[4:13:4], mask=batch["attention_mask"])
    """

    needs_equal_width = True

    def forward(
        self,
        student_hidden: Sequence[torch.Tensor],
        teacher_hidden: Sequence[torch.Tensor],
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        check_layers(student_hidden, teacher_hidden)
        mask = valid_tokens(mask, student_hidden[0])
        total = 0.0
        for ours, theirs in zip(student_hidden, teacher_hidden, strict=True):
            check_equal_width(ours, theirs)
            total = total + (_first(ours, mask) - _first(theirs.detach(), mask)).square().sum()
        return total / (self.count(mask).clamp(min=1) * len(student_hidden))

    @staticmethod
    def count(mask: torch.Tensor) -> torch.Tensor:
        """Over how many texts a batch is averaged; batches of one step are weighted by it."""
        return mask.bool().any(-1).sum()

    citation = """
@inproceedings{sun2019patient,
    title = {Patient Knowledge Distillation for {BERT} Model Compression},
    author = {Siqi Sun and Yu Cheng and Zhe Gan and Jingjing Liu},
    booktitle = {Proceedings of the 2019 Conference on Empirical Methods in Natural Language Processing},
    year = {2019}
}
""".strip()


def _first(states: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """`(batch, width)`: the state of each text's first token at length 1; zero for a text without tokens."""
    place = mask.int().argmax(-1).view(-1, 1, 1).expand(-1, 1, states.shape[-1])
    first = states.float().gather(1, place).squeeze(1)
    return nn.functional.normalize(torch.where(mask.any(-1, keepdim=True), first, 0.0), dim=-1)

"""Distillation of the flow between two layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from .checks import check_equal_width, check_pairs, valid_tokens


class FSPLoss(nn.Module):
    r"""
    Purpose: draws the flow of the solution procedure in the student, from one layer to another, towards the teacher's:
    squared difference of the matrices `H₁ᵀ H₂ / length` `(width, width)` of each text, averaged over their entries and
    over texts; computed in fp32.

    References:
        - Yim et al., A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning
          (CVPR 2017), equations 1 and 2
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`fsp`, also `gram`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "FSP
          matrix"

    Requirements:
        1. Student and teacher have the same widths: where they differ in them, the caller first applies trained
           linear maps ([`DistillationTrainer`] does).

    Inputs:
        - student_hidden (`Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of two layers, which may
          differ in width; twice the same for the uncentred covariance of one layer.
        - teacher_hidden (`Sequence[torch.Tensor]`): the same shapes; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations:
        - [`NSTLoss`] multiplies the same states the other way: token by token, not feature by feature.
        - [`HiddenMSELoss`] compares the states themselves.

    Example:
        >>> FSPLoss()(student_states[0:2], (teacher_states[0], teacher_states[4]), mask=batch["attention_mask"])
    """

    needs_equal_width = True

    def forward(
        self,
        student_hidden: Sequence[torch.Tensor],
        teacher_hidden: Sequence[torch.Tensor],
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        check_pairs(student_hidden, teacher_hidden)
        for ours, theirs in zip(student_hidden, teacher_hidden, strict=True):
            check_equal_width(ours, theirs)
        mask = valid_tokens(mask, student_hidden[0])
        difference = _flow(student_hidden, mask) - _flow([state.detach() for state in teacher_hidden], mask)
        texts = self.count(mask).clamp(min=1)
        return difference.square().sum() / (texts * difference.shape[1] * difference.shape[2])

    @staticmethod
    def count(mask: torch.Tensor) -> torch.Tensor:
        """Over how many texts a batch is averaged; batches of one step are weighted by it."""
        return mask.bool().any(-1).sum()

    citation = """
@inproceedings{yim2017gift,
    title = {A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning},
    author = {Junho Yim and Donggyu Joo and Jihoon Bae and Junmo Kim},
    booktitle = {IEEE Conference on Computer Vision and Pattern Recognition},
    year = {2017}
}
""".strip()


def _flow(states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    valid = mask.unsqueeze(-1)
    first, second = (torch.where(valid, state.float(), 0.0) for state in states)
    return first.transpose(1, 2) @ second / valid.sum(1, keepdim=True).clamp(min=1)

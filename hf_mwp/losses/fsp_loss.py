"""Distillation of the flow between two layers."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from .checks import check_layers, check_shapes, valid_tokens


class FSPLoss(nn.Module):
    r"""
    Squared difference of the flow from one layer to another, the matrices `H₁ᵀ H₂ / length` `(width, width)` of each
    text, averaged over their entries and over texts; computed in fp32.

    References:
        - Yim et al., A Gift from Knowledge Distillation: Fast Optimization, Network Minimization and Transfer Learning
          (CVPR 2017), equations 1 and 2
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`fsp`, also `gram`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "FSP
          matrix"

    Inputs:
        - student_hidden (`Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of two layers, which may
          differ in width; twice the same for the uncentred covariance of one layer.
        - teacher_hidden (`Sequence[torch.Tensor]`): the same shapes; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations: [`NSTLoss`] multiplies the same states token by token, not feature by feature.

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
        check_layers(student_hidden, teacher_hidden, count=2)
        for ours, theirs in zip(student_hidden, teacher_hidden, strict=True):
            check_shapes("hidden states", ours, theirs)
        mask = valid_tokens(mask, student_hidden[0])
        difference = _flow(student_hidden, mask) - _flow([state.detach() for state in teacher_hidden], mask)
        texts = self.count(mask).clamp(min=1)
        return difference.square().sum() / (texts * difference.shape[1] * difference.shape[2])

    @staticmethod
    def count(mask: torch.Tensor) -> torch.Tensor:
        """Number of texts of a batch that the loss averages over."""
        return mask.bool().any(-1).sum()


def _flow(states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    valid = mask.unsqueeze(-1)
    first, second = (torch.where(valid, state.float(), 0.0) for state in states)
    return first.transpose(1, 2) @ second / valid.sum(1, keepdim=True).clamp(min=1)

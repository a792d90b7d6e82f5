"""Distillation of the similarities between the tokens of a text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from .checks import check_layers, valid_tokens


class NSTLoss(nn.Module):
    r"""
    Squared difference of the similarities between tokens, the matrices `H₁ H₂ᵀ / width` `(tokens, tokens)`, averaged
    over the pairs of valid tokens; computed in fp32. This is neuron selectivity transfer with the polynomial kernel.

    References:
        - Like What You Like: Knowledge Distill via Neuron Selectivity Transfer: https://huggingface.co/papers/1707.01219
          (section 4)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`nst`, also `mmd`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "NST
          matrix"

    Inputs:
        - student_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of a layer,
          or of two layers of the same width.
        - teacher_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`): the same, of any width; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations: [`FSPLoss`] multiplies the same states feature by feature, not token by token.

    Example:
        >>> NSTLoss()(student_states[1], teacher_states[4], mask=batch["attention_mask"])
    """

    needs_equal_width = False

    def forward(
        self,
        student_hidden: torch.Tensor | Sequence[torch.Tensor],
        teacher_hidden: torch.Tensor | Sequence[torch.Tensor],
        mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        ours, theirs = (
            (states, states) if isinstance(states, torch.Tensor) else states
            for states in (student_hidden, teacher_hidden)
        )
        check_layers(ours, theirs, count=2)
        for who, states in (("student", ours), ("teacher", theirs)):
            if states[0].shape != states[1].shape:
                raise ValueError(
                    f"The {who}'s two layers have states of the widths {states[0].shape[-1]} and "
                    f"{states[1].shape[-1]}; their tokens can only be compared at the same width."
                )
        mask = valid_tokens(mask, ours[0])
        difference = _similarity(ours, mask) - _similarity([state.detach() for state in theirs], mask)
        return difference.square().sum() / self.count(mask).clamp(min=1)

    @staticmethod
    def count(mask: torch.Tensor) -> torch.Tensor:
        """Number of pairs of tokens of a batch that the loss averages over."""
        return mask.bool().sum(-1).square().sum()


def _similarity(states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    # Padded tokens become zero, and so do all their similarities.
    valid = mask.unsqueeze(-1)
    first, second = (torch.where(valid, state.float(), 0.0) for state in states)
    return first @ second.transpose(1, 2) / first.shape[-1]

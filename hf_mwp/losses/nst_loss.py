"""Distillation of the similarities between the tokens of a text."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import nn

from .checks import check_pairs, valid_tokens


class NSTLoss(nn.Module):
    r"""
    Purpose: draws the similarities between tokens in the student towards the teacher's: squared difference of the
    matrices `H₁ H₂ᵀ / width` `(tokens, tokens)`, averaged over the pairs of valid tokens; computed in fp32. This is
    neuron selectivity transfer with the polynomial kernel, a maximum mean discrepancy.

    References:
        - Like What You Like: Knowledge Distill via Neuron Selectivity Transfer: https://huggingface.co/papers/1707.01219
          (section 4)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`nst`, also `mmd`)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "NST
          matrix"

    Requirements: Widths may differ: no projection is needed.

    Inputs:
        - student_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`): the states `(batch, tokens, width)` of a layer,
          or of two layers.
        - teacher_hidden (`torch.Tensor` or `Sequence[torch.Tensor]`): the same, of any width; receive no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations:
        - [`FSPLoss`] multiplies the same states the other way: feature by feature, not token by token.
        - [`AttentionMSELoss`] compares learned similarities, head by head.

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
        check_pairs(ours, theirs)
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
        """Over how many pairs of tokens a batch is averaged; batches of one step are weighted by it."""
        return mask.bool().sum(-1).square().sum()

    citation = """
@misc{huang2017like,
    title = {Like What You Like: Knowledge Distill via Neuron Selectivity Transfer},
    author = {Zehao Huang and Naiyan Wang},
    year = {2017},
    eprint = {1707.01219},
    archivePrefix = {arXiv}
}
""".strip()


def _similarity(states: Sequence[torch.Tensor], mask: torch.Tensor) -> torch.Tensor:
    # Padded tokens become zero, and so do all their similarities.
    valid = mask.unsqueeze(-1)
    first, second = (torch.where(valid, state.float(), 0.0) for state in states)
    return first @ second.transpose(1, 2) / first.shape[-1]

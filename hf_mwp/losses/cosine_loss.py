"""Distillation of the direction of hidden states."""

from __future__ import annotations

import torch
from torch import nn

from .checks import check_equal_width, valid_tokens, without_autocast


class CosineLoss(nn.Module):
    r"""
    Purpose: draws the direction of the student's hidden states towards the teacher's: one minus the cosine of each
    token, averaged over the valid tokens; lengths do not matter. Computed in fp32, or fp64 for fp64 states.

    References:
        - DistilBERT: https://huggingface.co/papers/1910.01108 (section 3)
        - Dasgupta and Cohn, Improving Language Model Distillation through Hidden State Matching (ICLR 2025): the arm
          named MSE in the authors' program

    Requirements:
        1. Both tensors have the same width: where the models differ in it, the caller first applies a trained linear
           map ([`DistillationTrainer`] does).

    Inputs:
        - student_hidden (`torch.Tensor`): `(batch, tokens, width)`.
        - teacher_hidden (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations: [`HiddenMSELoss`] compares lengths, too; [`CKALoss`] needs neither equal widths nor equal directions.

    Example:
        >>> CosineLoss()(projection(student_states[1]), teacher_states[4], mask=batch["attention_mask"])
    """

    needs_equal_width = True

    def forward(
        self, student_hidden: torch.Tensor, teacher_hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Scalar loss, from 0 to 2; zero, with a zero gradient, if no token is valid."""
        check_equal_width(student_hidden, teacher_hidden)
        mask = valid_tokens(mask, student_hidden)
        with without_autocast(student_hidden):
            dtype = torch.promote_types(student_hidden.dtype, torch.float32)
            # What stands at padded places, NaN included, must not reach the loss.
            ours, theirs = (
                torch.where(mask.unsqueeze(-1), each.to(dtype), 0.0)
                for each in (student_hidden, teacher_hidden.detach())
            )
            distance = 1 - nn.functional.cosine_similarity(ours, theirs, dim=-1)
            return torch.where(mask, distance, 0.0).sum() / mask.sum().clamp(min=1)

    citation = """
@misc{sanh2019distilbert,
    title = {{DistilBERT}, a distilled version of {BERT}: smaller, faster, cheaper and lighter},
    author = {Victor Sanh and Lysandre Debut and Julien Chaumond and Thomas Wolf},
    year = {2019},
    eprint = {1910.01108},
    archivePrefix = {arXiv}
}
""".strip()

"""Distillation of hidden states and of embedding outputs by their squared distance."""

from __future__ import annotations

import torch
from torch import nn

from .checks import check_shapes, valid_tokens


class HiddenMSELoss(nn.Module):
    r"""
    Squared difference of hidden states of any layer, the embedding output included, averaged over width and valid
    tokens; computed in fp32.

    References:
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), the losses on hidden
          states and on embeddings
        - TinyBERT: https://huggingface.co/papers/1909.10351 (equations 8 and 9)
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`hidden_mse`)

    Inputs:
        - student_hidden (`torch.Tensor`): `(batch, tokens, width)`.
        - teacher_hidden (`torch.Tensor`): the same shape; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Example:
        >>> HiddenMSELoss()(projection(student_states[1]), teacher_states[4], mask=batch["attention_mask"])
    """

    needs_equal_width = True
    """Whether widths must be equal; a [`DistillationTrainer`] trains a linear map in front where they are not."""

    def forward(
        self, student_hidden: torch.Tensor, teacher_hidden: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        check_shapes("hidden states", student_hidden, teacher_hidden)
        difference = student_hidden.float() - teacher_hidden.detach().float()
        mask = valid_tokens(mask, difference)
        # `where` and not a product: whatever stands at padded places, NaN included, must not reach the loss.
        difference = torch.where(mask.unsqueeze(-1), difference, 0.0)
        return difference.square().sum() / (mask.sum().clamp(min=1) * student_hidden.shape[-1])

    citation = """
@inproceedings{ming2025compact,
    title = {A Compact Model for Mathematics Problem Representations Distilled from BERT},
    author = {Hao Ming and Xinguo Yu and Xiaotian Cheng and Zhenquan Shen and Xiaopan Lyu},
    booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
    year = {2025}
}
""".strip()

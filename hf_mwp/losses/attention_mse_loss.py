"""Distillation of attention matrices."""

from __future__ import annotations

import torch
from torch import nn

from .checks import valid_tokens


class AttentionMSELoss(nn.Module):
    r"""
    Purpose: draws the student's attention matrices towards the teacher's: squared difference over the pairs of a
    valid query and a valid key, summed over them and over heads, divided by the number of such pairs and heads;
    computed in fp32.

    Args:
        heads (`str`, *optional*, defaults to `"each"`):
            `"each"`: head by head (TextBrewer's `attention_mse`); both models have the same number. `"sum"`: the sums
            over heads are compared (`attention_mse_sum`); for the same number of heads too, since a sum grows with
            them. `"mean"`: the means over heads are compared, for any numbers of heads.

    References:
        - TextBrewer: https://huggingface.co/papers/2002.12620 (`attention_mse`, `attention_mse_sum`)
        - TinyBERT: https://huggingface.co/papers/1909.10351 (equation 7)
        - A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), table 6, "attention
          matrix"

    Requirements:
        1. The models give attention matrices, which of the implementations in transformers only `"eager"` does. While
           training they hold the dropout of attention, if there is any.
        2. Layers are counted from 1: there is no attention in the embeddings.

    Inputs:
        - student_attention (`torch.Tensor`): `(batch, heads, tokens, tokens)`, probabilities.
        - teacher_attention (`torch.Tensor`): the same, but for the number of heads; receives no gradient.
        - mask (`torch.Tensor`, *optional*): `(batch, tokens)`, true or non-zero where a token counts.

    Relations:
        - [`NSTLoss`] compares similarities of states, which are of the same shape, without any weights of attention.

    Example:
        >>> AttentionMSELoss()(student.attentions[0], teacher.attentions[3], mask=batch["attention_mask"])
    """

    needs_equal_width = False

    def __init__(self, heads: str = "each") -> None:
        super().__init__()
        if heads not in ("each", "sum", "mean"):
            raise ValueError(f'`heads` must be "each", "sum" or "mean", got {heads!r}.')
        self.heads = heads

    def forward(
        self, student_attention: torch.Tensor, teacher_attention: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Scalar fp32 loss; zero, with a zero gradient, if no token is valid."""
        student, teacher = student_attention.float(), teacher_attention.detach().float()
        for who, attention in (("student", student), ("teacher", teacher)):
            if attention.dim() != 4 or not attention.shape[1]:
                raise ValueError(
                    f"The {who}'s attention has the shape {tuple(attention.shape)}, not (batch, heads, tokens, "
                    "tokens): does that layer have heads?"
                )
        if self.heads == "mean":
            student, teacher = student.mean(1, keepdim=True), teacher.mean(1, keepdim=True)
        elif student.shape[1] != teacher.shape[1]:
            raise ValueError(
                f"The student's layer has {student.shape[1]} heads, the teacher's {teacher.shape[1]}: only their "
                'means can be compared (`AttentionMSELoss(heads="mean")`, "attention_mean" in a config).'
            )
        elif self.heads == "sum":
            student, teacher = student.sum(1, keepdim=True), teacher.sum(1, keepdim=True)
        if student.shape != teacher.shape:
            raise ValueError(
                f"The student's attention has the shape {tuple(student_attention.shape)}, the teacher's "
                f"{tuple(teacher_attention.shape)}: both must read the same tokens."
            )
        difference = student - teacher
        mask = valid_tokens(mask, difference[:, 0])
        # `where` and not a product: whatever stands at padded places, NaN included, must not reach the loss.
        difference = torch.where((mask.unsqueeze(-1) & mask.unsqueeze(-2)).unsqueeze(1), difference, 0.0)
        return difference.square().sum() / (self.count(mask).clamp(min=1) * difference.shape[1])

    @staticmethod
    def count(mask: torch.Tensor) -> torch.Tensor:
        """Over how many pairs of tokens a batch is averaged; batches of one step are weighted by it."""
        return mask.bool().sum(-1).square().sum()

    def extra_repr(self) -> str:
        return f"heads={self.heads!r}"

    citation = """
@inproceedings{yang2020textbrewer,
    title = {{TextBrewer}: An Open-Source Knowledge Distillation Toolkit for Natural Language Processing},
    author = {Ziqing Yang and Yiming Cui and Zhipeng Chen and Wanxiang Che and Ting Liu and Shijin Wang and
        Guoping Hu},
    booktitle = {Proceedings of the 58th Annual Meeting of the Association for Computational Linguistics: System
        Demonstrations},
    year = {2020}
}
""".strip()
